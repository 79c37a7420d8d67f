#!/usr/bin/env python3
"""A GRPO batch from mini serve, with Python's standard library.

    export MINI_SERVE_TOKEN=...   # of the service
    python3 rollouts.py http://127.0.0.1:7350 http://127.0.0.1:8000/v1 policy ID... > batch.jsonl

Set STEP to the number of the training step: the same instance in the same step is
the same request, which starts nothing twice and returns what is there.

It starts k attempts at each instance, waits for them, and prints a line for each
attempt: tokens, masks, log probabilities and the advantage in its group. Attempts
without a reward are accidents; they are left out of the group's mean, not counted as 0.
"""

import json
import os
import statistics
import sys
import time
import urllib.error
import urllib.request

K = 8


def call(method, url, body=None, key=None):
    """Sends a request, and again if the service is busy or has been restarted."""
    headers = {"Authorization": "Bearer " + os.environ["MINI_SERVE_TOKEN"], "Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key  # a repeated request starts nothing twice
    data = None if body is None else json.dumps(body).encode()
    while True:
        try:
            request = urllib.request.Request(url, data, headers, method=method)
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                sys.exit(f"{method} {url}: {error.code} {error.read().decode()}")
            time.sleep(float(error.headers.get("Retry-After", 10)))
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            print(f"{method} {url}: {error}; trying again", file=sys.stderr)
            time.sleep(5)


def main():
    service, model_url, model, *instances = sys.argv[1:]
    step = os.environ.get("STEP", "0")  # of the training
    ids = [
        call("POST", service + "/rollouts", {
            "instance": instance, "model": model, "base_url": model_url, "k": K, "tokens": True,
            "sampling": {"temperature": 1.0},
        }, key=f"step {step} {instance}")["id"]
        for instance in instances
    ]
    for rollout in ids:
        while True:
            group = call("GET", f"{service}/rollouts/{rollout}?wait=60&tokens=segments")
            if group["state"] not in ("queued", "running"):
                break
        if group["state"] != "done":
            print(rollout, group["state"], group.get("error", ""), file=sys.stderr)
            continue
        rewards = [a["reward"] for a in group["attempts"] if a["reward"] is not None]
        if not rewards:
            continue
        mean, deviation = statistics.fmean(rewards), statistics.pstdev(rewards)
        for attempt in group["attempts"]:
            if attempt["reward"] is None:
                print(rollout, attempt["class"], attempt["exit_status"], file=sys.stderr)
                continue
            print(json.dumps({
                "group": group["group"], "reward": attempt["reward"],
                "advantage": (attempt["reward"] - mean) / (deviation + 1e-6),
                "segments": [
                    {name: row[name] for name in ("prompt_ids", "response_ids", "mask", "logprobs")}
                    for row in attempt.get("tokens", []) if row["subagent"] == 0
                ],
            }))


if __name__ == "__main__":
    main()
