"""Bugs of what calls the user's code, compares it and looks at what it gives."""

from sabotage.bugs import Bug

_VALUES, _CALLS = (
    "kernels/expressions/user_values.py",
    "kernels/expressions/user_calls.py",
)
_APPLY, _CONTEXT, _INSTANCES = (
    "kernels/operators/apply.py",
    "kernels/operators/user_context.py",
    "kernels/operators/user_instances.py",
)
_AGGREGATE, _CODE, _SECOND = (
    "kernels/aggregates/aggregate_code.py",
    "plan/usercode/code_fingerprint.py",
    "local/second_run.py",
)
_SEARCH, _FILES = "plan/usercode/module_search.py", "plan/usercode/imported_files.py"
_MODULE_TESTS = ("tests/unit/plan/test_program_modules.py",)
_FOLDED = "kernels/aggregates/user_aggregate.py"
_FOLDED_TESTS = ("tests/unit/kernels/test_folded_aggregates.py",)
_VALUE_TESTS = ("tests/unit/kernels/test_user_values.py",)
_HOSTILE = ("tests/unit/kernels/test_hostile_user_code.py",)
_CODE_TESTS = ("tests/unit/plan/test_code_fingerprint.py",)
_SECOND_TESTS = ("tests/unit/local/test_second_run.py",)

BUGS = (
    # --- values ---
    Bug(
        "a bool is a number",
        _VALUES,
        "return None if isinstance(value, bool) else int.__int__(value)",
        "return int.__int__(value)",
        _VALUE_TESTS,
    ),
    Bug(
        "a float is an integer",
        _VALUES,
        "        return kinds <= {_PLAIN[dtype]}",
        "        return True",
        _VALUE_TESTS,
    ),
    Bug(
        "an integer may lose its last bits in a DOUBLE",
        _VALUES,
        "if abs(number) > _LARGEST or float(number) != number:",
        "if abs(number) > _LARGEST:",
        _VALUE_TESTS,
    ),
    Bug(
        "a time without a zone is UTC",
        _VALUES,
        '    if value.utcoffset() is None:\n        raise Misfit(dtype, value, ", which has no',
        "    if value.utcoffset() is None:\n        value = value.replace(tzinfo=UTC)\n"
        '    if False:\n        raise Misfit(dtype, value, ", which has no',
        _VALUE_TESTS,
    ),
    Bug(
        "a struct may have other keys",
        _VALUES,
        "if set(value) != names:",
        "if not names <= set(value):",
        _VALUE_TESTS,
    ),
    # --- calls ---
    Bug(
        "SystemExit of a function ends the run",
        _CALLS,
        "        except BaseException as error:\n            check_not_interrupted(error, call)\n"
        "            failed_at = failing_line(function.name, call, error)\n"
        "            raise RowFailure(len(results)",
        "        except Exception as error:\n            check_not_interrupted(error, call)\n"
        "            failed_at = failing_line(function.name, call, error)\n"
        "            raise RowFailure(len(results)",
        _HOSTILE,
    ),
    Bug(
        "a vectorised result shares its memory",
        _CALLS,
        "return pa.concat_arrays([result, result.slice(0, 0)])",
        "return result",
        _HOSTILE,
    ),
    Bug(
        "a result of an aggregate is its state",
        _AGGREGATE,
        "            return self._freeze(result)",
        "            return result",
        _HOSTILE,
    ),
    Bug(
        "rows of an aggregate are shown as they were left",
        _AGGREGATE,
        "values = deepcopy(values) if self._copied else values",
        "values = values or ()",
        _HOSTILE,
    ),
    Bug(
        "windows that part share a state",
        _FOLDED,
        "span.pane, self._settle(span.state))",
        "span.pane, span.state)",
        _FOLDED_TESTS,
    ),
    Bug(
        "a result may change the state",
        _FOLDED,
        "self._code.result(at, self._settle(spans[index].state))",
        "self._code.result(at, spans[index].state)",
        _FOLDED_TESTS,
    ),
    Bug(
        "states of windows that lack rows are made",
        _FOLDED,
        "np.flatnonzero(counted & (self._table.end[panes] > self._wanted_from()))",
        "np.flatnonzero(counted)",
        _FOLDED_TESTS,
    ),
    Bug(
        "states stay behind",
        _FOLDED,
        "                self._forget_before(group, edge)",
        "                pass",
        _FOLDED_TESTS,
    ),
    Bug(
        "a state is not looked at",
        _FOLDED,
        "            return self._settle(state)",
        "            return state",
        _FOLDED_TESTS,
    ),
    Bug(
        "state stays as the user made it",
        _INSTANCES,
        "            if plain is not value:",
        "            if False:",
        _HOSTILE,
    ),
    Bug(
        "instances share the lists of their class",
        _INSTANCES,
        "if isinstance(value := getattr(instance, name, None), list | dict):",
        "if isinstance(value := getattr(instance, name, None), bytes):",
        _HOSTILE,
    ),
    Bug(
        "nested state is not looked at",
        _APPLY,
        "            self._changed[key] = event",
        "            pass",
        _HOSTILE,
    ),
    Bug(
        "other threads may emit",
        _CONTEXT,
        "if self._thread != threading.get_ident():",
        "if self._thread is None:",
        _HOSTILE,
    ),
    # --- fingerprints ---
    Bug(
        "modules that a module imports do not count",
        _SEARCH,
        "                waiting += _imports(module.source, package, one.name)",
        "                pass",
        _CODE_TESTS,
    ),
    Bug(
        "globals of a function do not count",
        _CODE,
        "self._all((function.__code__, extras, used))",
        "self._all((function.__code__, extras))",
        _CODE_TESTS,
    ),
    Bug(
        "values of other types count by their type only",
        _CODE,
        "        return self._reduced(value)",
        "        return str(type(value))",
        _CODE_TESTS,
    ),
    Bug(
        "other code is taken for the same",
        "spark/live/job_setup.py",
        "    if changed and not accept:",
        "    if not changed and not accept and known is None:",
        ("tests/unit/spark/test_live_code.py",),
    ),
    Bug(
        "accepted code is forgotten",
        "spark/live/job_setup.py",
        "    begun.code = code\n",
        "",
        ("tests/unit/spark/test_live_code.py",),
    ),
    # --- modules of a program's folder ---
    Bug(
        "modules of the folder stay behind",
        _FILES,
        "        self._files.append(file)",
        "        self._files.append(ImportedFile(file.path, file.source))",
        _MODULE_TESTS,
    ),
    Bug(
        "two programs share the modules of one name",
        _FILES,
        'f"{IMPORTED}/{next(_numbers)}"',
        'f"{IMPORTED}/0"',
        _MODULE_TESTS,
    ),
    Bug(
        "installed modules may be missing on a machine",
        "spark/live/machine_check.py",
        "        if find_spec(name) is None",
        "        if False",
        ("tests/unit/spark/test_machine_check.py",),
    ),
    Bug(
        "a job that is there is begun anew",
        "spark/live/job_setup.py",
        '_holds_job(location) if resume == "auto" else resume',
        "resume is True",
        ("tests/unit/spark/test_live_resume.py",),
    ),
    # --- the second run ---
    Bug(
        "the second run has the same hash seed",
        _SECOND,
        '"1" if environment.get("PYTHONHASHSEED") != "1" else "2"',
        'environment.get("PYTHONHASHSEED", "1")',
        _SECOND_TESTS,
    ),
    Bug(
        "the second run makes no more calls",
        _SECOND,
        '    os.environ["WEIR_EXTRA_CALLS"] = "1"',
        '    os.environ.pop("WEIR_EXTRA_CALLS", None)',
        _SECOND_TESTS,
    ),
    Bug(
        "the second run is never restarted",
        _SECOND,
        "                run.renew()",
        "                pass",
        _SECOND_TESTS,
    ),
)
