"""The recipes of `examples/cluster` for Kubernetes and YARN, run against what there is of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from cluster.cluster import JAVA, SPARK
from cluster.kubernetes import KubernetesApi
from cluster.submitting import SUBMIT
from cluster.waiting import LIMIT, POLL

RECIPES = SUBMIT.parent
YARN_SITE = """<configuration>
<property><name>yarn.resourcemanager.address</name><value>127.0.0.1:1</value></property>
<property><name>yarn.resourcemanager.connect.max-wait.ms</name><value>1</value></property>
<property><name>yarn.resourcemanager.connect.retry-interval.ms</name><value>1</value></property>
<property><name>ipc.client.connect.max.retries</name><value>0</value></property>
</configuration>
"""


def the_recipe_for_kubernetes(folder: Path) -> None:
    """the recipe for Kubernetes runs on an API server in a box, whose pods are processes"""
    text = (RECIPES / "kubernetes.yaml").read_text(encoding="utf-8")
    kinds: dict[str, Any] = {t["kind"]: t for t in yaml.safe_load_all(text)}
    program, bucket = folder / "program", folder / "bucket"
    program.mkdir()
    (bucket / "clicks").mkdir(parents=True)
    for name, content in kinds["ConfigMap"]["data"].items():
        (program / name).write_text(content.replace("s3://bucket", str(bucket)), encoding="utf-8")
    with (bucket / "clicks" / "a.jsonl").open("w", encoding="utf-8") as rows:
        for n in range(20_000):
            at = f"2026-03-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"
            rows.write(json.dumps({"At": at, "User": f"u{n % 7}", "Page": f"s{n % 3}/p"}) + "\n")
    (container,) = kinds["Job"]["spec"]["template"]["spec"]["containers"]
    with KubernetesApi(folder) as api, (folder / "log").open("wb") as log:
        api.add("pods", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "driver"}})
        here = {
            "$(POD_IP)": "127.0.0.1",
            "$(POD_NAME)": "driver",
            "$(NAMESPACE)": "here",
            "https://kubernetes.default.svc": api.url,
            "/opt/weir/submit.py": str(SUBMIT),
            "/program/": f"{program}/",
            "s3://bucket": str(bucket),
        }
        words = [_replaced(word, here) for word in container["args"]]
        submitted = subprocess.Popen(
            [str(SPARK / "bin" / "spark-submit"), *words],
            env=_environment(),
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            seen = _pods_until_end(submitted, api)
        finally:
            if submitted.poll() is None:
                os.killpg(submitted.pid, signal.SIGKILL)
        said = (folder / "log").read_text("utf-8", "replace")
        assert not submitted.returncode, said[-3000:]
        assert len(seen) == 3, sorted(seen)
        for pod in seen.values():
            assert pod["metadata"]["ownerReferences"][0]["name"] == "driver"
            assert pod["spec"]["containers"][0]["image"] == container["image"]
        assert not api.pods(), "pods are left behind"
    found = (bucket / "per_user.parquet").read_bytes()
    local = (sys.executable, "-m", "weir.cli", "run", str(program / "clicks.weir"))
    done = subprocess.run(local, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert found == (bucket / "per_user.parquet").read_bytes()


def _pods_until_end(submitted: subprocess.Popen[bytes], api: KubernetesApi) -> dict[str, Any]:
    """The pods of executors that there were, by name."""
    seen: dict[str, Any] = {}
    until = time.monotonic() + 3 * LIMIT
    while submitted.poll() is None:
        if time.monotonic() > until:
            raise TimeoutError(f"the job has not ended, {len(seen)} pods")
        seen |= {pod["metadata"]["name"]: pod for pod in api.pods()}
        time.sleep(POLL)
    return seen


def the_recipe_for_yarn(folder: Path) -> None:
    """the recipe for YARN is understood by spark-submit, as far as the resource manager"""
    (folder / "yarn-site.xml").write_text(YARN_SITE, encoding="utf-8")
    shutil.copy(SUBMIT, folder)
    for archive in ("environment.tar.gz", "clicks.zip"):
        (folder / archive).touch()
    path = os.pathsep.join((str(SPARK / "bin"), os.environ["PATH"]))
    env = {**_environment(), "HADOOP_CONF_DIR": str(folder), "PATH": path}
    done = subprocess.run(
        [str(RECIPES / "yarn.sh")],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Connecting to ResourceManager" in done.stderr, done.stderr[-3000:]
    assert "Unrecognized option" not in done.stderr


def _environment() -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "SPARK_HOME": str(SPARK),
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": JAVA,
    }


def _replaced(word: str, by: dict[str, str]) -> str:
    for old, new in by.items():
        word = word.replace(old, new)
    return word
