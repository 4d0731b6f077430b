"""Imports go up the list of packages, and each library stays in its own.

Read from the syntax trees, imports for type checkers included: a name that a layer cannot see
when it runs it should not know of either.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from floor_plan import packages
from weir.loops.code_cache import FROZEN
from weir.runtime.loop_needs import all_loops

pytestmark = pytest.mark.xdist_group("layers")  # one process reads all files, once

SRC = Path(__file__).parents[2] / "src"

LAYERS = (
    "loops",
    "events",
    "plan",
    "script",
    "handlers",
    "kernels",
    "reliable",
    "files",
    "ingress",
    "runtime",
    "job",
    "local",
    "shadow",
    "simulator",
    "conform",
    "page",
    "spark",
    "replay",
)
EVERYWHERE = {"errors", "garbage", "wording"}
# The ways into and out of the plan, which know nothing of each other.
NOT_SIDEWAYS = {"script", "handlers", "kernels"}
# Only the command line and what users import may reach for anything.
TOP = {"__init__", "cli", "testing", "pytest_plugin", *EVERYWHERE}

CLOCK_AND_CHANCE = {"time", "random", "secrets", "uuid"}
# Nothing of what these do is in an answer: they talk to the world outside.
OUTWARD = {"spark", "files", "cli", "page"}
CHANCE_OF_THE_SYSTEM = {"urandom", "getrandom"}
ASK_THEM_TOO = {
    "ingress/source_driver.py": "the time of arrival, which goes into the log",
    "kernels/structures/key_secrets.py": "tells keys apart, and shows in no answer",
    "local/stream_display.py": "how long a notebook waits",
    "reliable/traces.py": "names of temporary files",
    "shadow/shadow_run.py": "how long a comparison takes",
    "testing/memory_runs.py": "draws by a seed",
}

LIBRARIES = {
    "sqlglot": {"script"},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "numba": {"loops"},
    "obstore": {"files"},
    "typer": {"cli"},
    "rich": {"cli"},
}
PUBLIC_SQLGLOT = ("Dialect", "Token", "TokenError", "TokenType", "Tokenizer", "exp")


def modules() -> list[Path]:
    return sorted((SRC / "weir").rglob("*.py"))


@cache
def imported(path: Path) -> frozenset[str]:
    """Every module that a file imports, by its full name."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    package = path.relative_to(SRC).with_suffix("").parts
    package = package if path.name == "__init__.py" else package[:-1]
    for node in _parsed(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "weir" and len(parts) > 1 else ""


def allowed(here: str, there: str) -> bool:
    if there == here or there in EVERYWHERE:
        return True
    if {here, there} <= NOT_SIDEWAYS:
        return False
    return there in LAYERS and LAYERS.index(there) < LAYERS.index(here)


def test_every_package_has_a_place() -> None:
    packages = {p.name for p in (SRC / "weir").iterdir() if p.is_dir() and p.name[0] != "_"}
    assert packages <= {*LAYERS, "cli", "testing"}
    files = {p.stem for p in (SRC / "weir").glob("*.py")}
    assert files <= TOP


def home(path: Path) -> str:
    return layer(".".join(path.relative_to(SRC).with_suffix("").parts))


def test_imports_go_up() -> None:
    wrong = {}
    for path in modules():
        here = home(path)
        reached = {layer(module) for module in imported(path)} - {""}
        if here not in TOP:
            wrong[path] = {there for there in reached if not allowed(here, there)}
    assert len(wrong) > 300
    assert {path: found for path, found in wrong.items() if found} == {}


def test_the_runners_on_spark_know_nothing_of_each_other() -> None:
    """They share what lies in `spark/` itself, which knows neither."""
    runners = {"weir.spark.offline", "weir.spark.live"}
    for path in (SRC / "weir" / "spark").rglob("*.py"):
        here = ".".join(path.relative_to(SRC).with_suffix("").parts[:3])
        reached = {".".join(module.split(".")[:3]) for module in imported(path)}
        assert not reached & (runners - {here}), path


def test_libraries_stay_at_home() -> None:
    for path in modules():
        used = {module.split(".")[0] for module in imported(path)}
        away = {name for name, at in LIBRARIES.items() if name in used and home(path) not in at}
        assert not away, path


def test_sqlglot_is_used_by_its_public_names() -> None:
    """Its range of versions rests on this: what a module of it names in private may change."""
    for path in (p for p in modules() if home(p) == "script"):
        used = {module for module in imported(path) if module.split(".")[0] == "sqlglot"}
        assert used <= {"sqlglot", *(f"sqlglot.{name}" for name in PUBLIC_SQLGLOT)}, path
        for node in _parsed(path):
            if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
                assert ast.unparse(node.value) == "self", ast.unparse(node)


def test_the_clock_and_chance_stay_outside() -> None:
    found = set()
    for path in (p for p in modules() if home(p) not in OUTWARD):
        file = path.relative_to(SRC / "weir").as_posix()
        if {module.rpartition(".")[2] for module in imported(path)} & CHANCE_OF_THE_SYSTEM:
            found.add(file)
        if CLOCK_AND_CHANCE & imported(path):
            found.add(file)
        for node in _parsed(path):
            if isinstance(node, ast.Attribute):
                if node.attr in CHANCE_OF_THE_SYSTEM:
                    found.add(file)
                assert node.attr not in {"now", "utcnow", "today"} or is_own(node), file
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
                assert node.args, f"{file}: chance without a seed"
    assert found == {*ASK_THEM_TOO}


def is_own(node: ast.Attribute) -> bool:
    """Say whether a time is the simulator's, or a field."""
    return not ast.unparse(node.value).endswith(("datetime", "date", "Timestamp"))


def test_files_know_no_scripts() -> None:
    for path in (p for p in modules() if home(p) == "files"):
        assert "script" not in {layer(module) for module in imported(path)}, path


def test_one_function_plans_for_all() -> None:
    parts = {
        "weir.plan.rewrites.rewrite.rewrite",
        "weir.plan.stages.cut_stages",
        "weir.runtime.topology.make_topology",
    }
    users = {p for p in modules() if parts & imported(p)}
    assert users == {SRC / "weir/runtime/program_plan.py"}


def test_the_packages_of_the_floor_plan_are_in_this_order() -> None:
    assert packages() == [*LAYERS, "cli", "testing"]


def test_the_tables_of_contributing_are_the_folders() -> None:
    text = (SRC.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE) == [*LAYERS, "cli", "testing"]
    rows = re.findall(r"^\| (`tests/.*?) \|", text, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`tests/(\w+)`", row)]
    assert sorted(named) == sorted(p.name for p in (SRC.parent / "tests").glob("[a-z]*/"))


def test_no_import_goes_around_the_rule() -> None:
    """Imports by name are not in the syntax trees; only `weir` itself loads its names so, the
    command line, which may import everything, its commands, and who reads handlers the modules of
    Python's library that these import."""
    around = {"import_module", "__import__", "run_module", "run_path"}
    free = ("__init__.py", "cli/__init__.py", "handlers/reading/local_imports.py")
    for path in modules():
        if path.relative_to(SRC / "weir").as_posix() in free:
            continue
        nodes = list(_parsed(path))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        names |= {module.rpartition(".")[2] for module in imported(path)}
        assert not names & around, path


def _parsed(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def test_the_rule_itself() -> None:
    assert allowed("kernels", "plan")
    assert allowed("plan", "events")
    assert allowed("local", "files")
    assert not allowed("plan", "script")
    assert not allowed("kernels", "script")
    assert not allowed("script", "kernels")
    assert not allowed("events", "plan")


def test_loops_lie_in_modules_of_their_own() -> None:
    """One setting of mypy is for them, and their text alone says whether code on disk is right."""
    users = {p for p in modules() if "weir.loops.compiled" in imported(p)}
    assert users == {p for p in modules() if p.stem.endswith("_loops")}
    settings = tomllib.loads((SRC.parent / "pyproject.toml").read_text(encoding="utf-8"))
    untyped = [o["module"] for o in settings["tool"]["mypy"]["overrides"] if "module" in o]
    loops = sorted(".".join(p.relative_to(SRC).with_suffix("").parts) for p in users)
    assert loops in untyped


def test_loops_import_only_what_the_stamp_of_their_code_sees() -> None:
    """Machine code keeps the values of constants: those that a loop takes from elsewhere must be
    made in a file whose text `loop_cache.stamp` reads."""
    seen = {f"weir.{name.removesuffix('.py').replace('/', '.')}" for name in FROZEN}
    for path in (p for p in modules() if p.stem.endswith("_loops")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("weir"):
                continue
            for name in (alias.name for alias in node.names):
                of_loops = node.module.endswith("_loops") or name.endswith("_loops")
                assert of_loops or (node.module in seen and name in made_in(node.module)), path


def test_python_calls_only_loops_that_declare_their_types() -> None:
    """One that declares none has no entry for Python, and declares none because no one calls it."""
    entries = {
        (".".join(path.relative_to(SRC).with_suffix("").parts), node.name): bool(types(node))
        for path in modules()
        if path.stem.endswith("_loops")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    called = {
        of
        for path in modules()
        if not path.stem.endswith("_loops")
        for of in entries
        if of[0] in imported(path) and of[1] in words(path)
    }
    assert {of for of, is_entry in entries.items() if is_entry} <= called
    direct = {
        (node.module, alias.name)
        for path in modules()
        if not path.stem.endswith("_loops")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert not {of for of in direct if not entries.get(of, True)}


def types(function: ast.FunctionDef) -> list[ast.expr]:
    return [a.annotation for a in function.args.args if a.annotation is not None]


def words(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_all_loops_are_listed() -> None:
    """`weir warm` compiles them, and no more is needed."""
    listed = {loop.py_func.__module__ for loop in all_loops()}
    with_entries = {
        ".".join(path.relative_to(SRC).with_suffix("").parts)
        for path in modules()
        if path.stem.endswith("_loops")
        and any(
            types(node)
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef)
        )
    }
    assert listed == with_entries


def made_in(module: str) -> set[str]:
    """The names that a module gives a value itself, and does not import."""
    text = (SRC / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
    body = ast.parse(text).body
    assigned = [node.targets[0] for node in body if isinstance(node, ast.Assign)]
    assigned += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return functions | {target.id for target in assigned if isinstance(target, ast.Name)}


def test_what_a_module_keeps_to_itself_it_uses() -> None:
    """Ruff does not see a function that nothing calls."""
    unused = []
    for path in modules():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        made = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                    made.append(name)
        own = {name for name in made if re.fullmatch(r"_[^_].*[^_]", name)}
        unused += [f"{path}: {n}" for n in own if len(re.findall(rf"\b{n}\b", text)) == 1]
    assert unused == []


def test_decoders_are_made_when_a_module_is_imported() -> None:
    """Two threads that are the first to decode a type at one moment crash msgspec."""
    late = re.compile(r"\bmsgspec\.(json|msgpack)\.decode\(|\bmsgspec\.convert\(")
    found = [p.name for p in SRC.rglob("*.py") if late.search(p.read_text(encoding="utf-8"))]
    assert found == []


def test_the_first_line_of_a_module_stands_alone() -> None:
    """One sentence says what the module is; its contract follows after a blank line."""
    wrong = []
    for path in modules():
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        first, _, rest = (text or ".").partition("\n")
        if not first.endswith((".", ".`")) or rest[:1].strip():
            wrong.append(f"{path.relative_to(SRC)}: {first}")
    assert wrong == []


def test_the_name_of_a_class_or_an_alias_is_used_once() -> None:
    homes: dict[str, list[str]] = {}
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for name in (*classes, *aliases(tree)):
            homes.setdefault(name, []).append(str(path.relative_to(SRC)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def aliases(module: ast.Module) -> Iterator[str]:
    """The public names that a module gives to types: in camel case, whatever the value is."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name):
                    yield name


def test_aliases_are_found() -> None:
    text = "A1 = 1\nRows = list[int]\nX: TypeAlias = int\nKind: TypeAlias = int\n_Own = int\n"
    assert list(aliases(ast.parse(text))) == ["Rows", "Kind"]
