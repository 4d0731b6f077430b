"""The recipes of `examples/cluster` say what Spark, Kubernetes and Weir understand."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from functools import cache
from pathlib import Path

import pyspark
import pytest
import yaml

from weir.cli import load_command
from weir.script import parse_program
from weir.spark.live.live_settings import grace_seconds

RECIPES = Path(__file__).parents[2] / "examples" / "cluster"
JARS = Path(pyspark.__file__).parent / "jars"
CONFIGS = {  # where Spark has the names of its settings
    "spark-core": "org/apache/spark/internal/config/",
    "spark-kubernetes": "org/apache/spark/deploy/k8s/",
    "spark-yarn": "org/apache/spark/deploy/yarn/",
}
PREFIXES = ("spark.kubernetes.executor.secretKeyRef.", "spark.yarn.appMasterEnv.")
SHOW = '#!/bin/sh\nprintf "%s\\n" "$@"\n'


@cache
def class_texts(jar: str, folder: str) -> bytes:
    (path,) = JARS.glob(f"{jar}_*.jar")
    with zipfile.ZipFile(path) as archive:
        return b"\n".join(archive.read(n) for n in archive.namelist() if n.startswith(folder))


def spark_knows(setting: str) -> bool:
    if setting.startswith("spark.weir."):
        return setting.removeprefix("spark.weir.") in {"ports", "manager_address", "host_address"}
    name = next((p for p in PREFIXES if setting.startswith(p)), setting)
    return any(name.encode() in class_texts(*where) for where in CONFIGS.items())


def options_of_submit() -> set[str]:
    parser = class_texts("spark-launcher", "org/apache/spark/launcher/SparkSubmitOptionParser")
    return {found.decode() for found in re.findall(rb"--[a-z][a-z-]+", parser)}


def options_of_run() -> set[str]:
    return {option for parameter in load_command("run").params for option in parameter.opts}


def check_words(words: list[str]) -> None:
    """Check the words of a spark-submit: its own options, its settings, those of `weir run`."""
    at = next(n for n, word in enumerate(words) if word.endswith("submit.py"))
    weir = words.index("run", at)
    for word in words[:at]:
        if word.startswith("--"):
            assert word.partition("=")[0] in options_of_submit(), word
    for name in re.findall(r"(?:^|--conf=)(spark\.[\w.]+)=", "\n".join(words[:at]), re.MULTILINE):
        assert spark_knows(name), name
    for word in words[weir:]:
        if word.startswith("--"):
            assert word.partition("=")[0] in options_of_run(), word
    assert "--resume=auto" in words[weir:]


@pytest.mark.parametrize("name", ["standalone.sh", "yarn.sh"])
def test_scripts(name: str, tmp_path: Path) -> None:
    (tmp_path / "spark-submit").write_text(SHOW, encoding="utf-8")
    (tmp_path / "spark-submit").chmod(0o755)
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SPARK_HOME": str(JARS.parent)}
    done = subprocess.run([RECIPES / name], env=env, capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    check_words(words)
    if name == "standalone.sh":
        jar = words[words.index("org.apache.spark.deploy.PythonRunner") + 1]
        assert Path(jar).is_file()
        assert words[words.index("/shared/submit.py") + 1] == ""  # no --py-files


def test_kubernetes() -> None:
    text = (RECIPES / "kubernetes.yaml").read_text(encoding="utf-8")
    kinds = {thing["kind"]: thing for thing in yaml.safe_load_all(text)}
    assert list(kinds) == ["ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Job"]
    binding, account = kinds["RoleBinding"], kinds["ServiceAccount"]["metadata"]["name"]
    assert binding["subjects"][0]["name"] == account
    assert binding["roleRef"]["name"] == kinds["Role"]["metadata"]["name"]
    pod = kinds["Job"]["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["restartPolicy"]) == (account, "Never")
    (container,) = pod["containers"]
    words = container["args"]
    check_words(words)
    grace = next(w.removeprefix("--grace=") for w in words if w.startswith("--grace="))
    assert pod["terminationGracePeriodSeconds"] >= grace_seconds(grace) + 10
    assert f"--conf=spark.kubernetes.container.image={container['image']}" in words
    used = set(re.findall(r"\$\((\w+)\)", " ".join(words)))
    assert used == {variable["name"] for variable in container["env"]}
    (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
    assert mount["name"] == volume["name"]
    assert volume["configMap"]["name"] == kinds["ConfigMap"]["metadata"]["name"]
    program = words[words.index("run") + 1]
    assert Path(program).parent == Path(mount["mountPath"])
    assert Path(program).name in kinds["ConfigMap"]["data"]
    copied = re.search(r"^COPY .*\bsubmit\.py (\S+)$", _dockerfile(), re.MULTILINE)
    assert copied is not None and f"{copied[1]}submit.py" in words


def _dockerfile() -> str:
    return (RECIPES / "Dockerfile").read_text(encoding="utf-8")


def test_the_program_of_the_kubernetes_recipe(tmp_path: Path) -> None:
    text = (RECIPES / "kubernetes.yaml").read_text(encoding="utf-8")
    config = next(t for t in yaml.safe_load_all(text) if t["kind"] == "ConfigMap")
    for name, content in config["data"].items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    program = parse_program(config["data"]["clicks.weir"], directory=tmp_path)
    assert [name for name, _ in program.code] == ["rules.py", "sites"]
