"""Bugs in what the command line shows, and in what is left behind."""

from sabotage.bugs import Bug

_OWN, _STORE, _SAY = "files/own_folder.py", "files/object_store.py", "cli/command_line.py"
_FOLDERS = ("tests/unit/files/test_own_folder.py",)
_STORES = ("tests/unit/spark/test_stores.py",)
_SIGNALS = ("tests/unit/spark/test_process_signals.py",)
_HOSTILE = ("tests/unit/cli/test_hostile.py",)

BUGS = (
    Bug(
        "C1 controls reach the terminal",
        "wording.py",
        'f"\\x7f-\\x9f{_BIDI}',
        'f"\\x7f{_BIDI}',
        ("tests/unit/test_wording.py",),
    ),
    Bug(
        "what people read is not made printable",
        _SAY,
        'put(f"{printable(text)}\\n", err=err)',
        'put(f"{text}\\n", err=err)',
        _HOSTILE,
    ),
    Bug("rows go to a terminal as they are", _SAY, "if stream.isatty():", "if False:", _HOSTILE),
    Bug(
        "a folder of a living process is removed",
        _OWN,
        "if free is False or (not",
        "if (not",
        _FOLDERS,
    ),
    Bug(
        "a folder of another machine is removed at once",
        _OWN,
        'here = owner.kernel != "" and owner.kernel == _kernel()',
        "here = True",
        _FOLDERS,
    ),
    Bug(
        "a folder that stepped aside goes with its run",
        "files/writers.py",
        "file_time(self.folder), _bring_back)",
        "file_time(self.folder))",
        _FOLDERS,
    ),
    Bug(
        "half of an object that could not be written stays",
        _STORE,
        "                os.unlink(written)",
        "                pass",
        _STORES,
    ),
    Bug(
        "an object's name leads out of its store",
        _STORE,
        "if _NO_KEY.search(key):",
        "if not key:",
        _STORES,
    ),
    Bug(
        "everybody may read a store",
        _STORE,
        "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)",
        "os.O_WRONLY | os.O_CREAT | os.O_EXCL)",
        _STORES,
    ),
    Bug(
        "who only reads makes the folder",
        _STORE,
        "return ObjectStore(location, make=False)",
        "return ObjectStore(location)",
        _STORES,
    ),
    Bug(
        "a second SIGTERM is waited with",
        "spark/process_signals.py",
        "        numbers.append(number)\n        if len(numbers) > 1:\n            handler",
        "        numbers.append(number)\n        if len(numbers) > 9:\n            handler",
        _SIGNALS,
    ),
)
