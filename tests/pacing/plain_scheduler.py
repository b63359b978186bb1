"""A scheduler without virtual time, for the tests of paced runs. It is started like kube-scheduler.

A few hundred times a second it lists pods without a node and binds them, all at once, to the nodes in turn. Instead,
with `--way`, it `delays` (waits before it binds), `ignores` (binds nothing) or `exits` (when it lists a pod).
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import urllib.request
from pathlib import Path


def option(name: str) -> str:
    return next((text.partition("=")[2] for text in sys.argv if text.startswith(f"--{name}=")), "")


def get(path: str) -> list[str]:
    with urllib.request.urlopen(SERVER + path) as response:
        return [item["metadata"]["name"] for item in json.load(response)["items"]]


def bind(pod: str, node: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    request = urllib.request.Request(
        f"{SERVER}/api/v1/namespaces/default/pods/{pod}/binding",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()


def main() -> None:
    way, turn = option("way"), 0
    nodes = get("/api/v1/nodes")
    time.sleep(0.4)  # The run detects by this pause that the start-up is complete.
    while True:
        pods = get("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D")
        if way == "delays" and pods:
            time.sleep(0.2)
        if way == "exits" and pods:
            print("no pods, please")
            sys.exit(4)
        if way != "ignores":
            threads = [
                threading.Thread(target=bind, args=(pod, nodes[(turn + number) % len(nodes)]))
                for number, pod in enumerate(pods)
            ]
            turn += len(pods)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        time.sleep(0.003)


if __name__ == "__main__":
    kubeconfig = Path(option("config")).parent / "kubeconfig"
    SERVER = re.findall(r"server: (\S+)", kubeconfig.read_text())[0]
    main()
