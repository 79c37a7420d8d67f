#!/usr/bin/env python3
"""Write the texts that Jinja2 renders, for the tests of the prompts in Jinja.

It needs Debian's python3-jinja2 and python3-yaml:

    apt-get install python3-jinja2 python3-yaml
    /usr/bin/python3 scripts/jinja-goldens.py

The templates are those of configs/testdata/peer and the lines of
agent/testdata/jinja/constructs.txt. A text of more than 1500 bytes is
written as its hash.
"""

import hashlib
import json
import pathlib
import re

import jinja2
import yaml

root = pathlib.Path(__file__).resolve().parent.parent
golden = root / "agent" / "testdata" / "jinja"

hostile = "{{ task }} {% if x %} {# c #} {{"
# A value [TEXT, N] in a golden file is TEXT repeated N times.
outputs = {
    "normal": "a.py\nb.py\n", "empty": "", "without newline": "x", "spaces": " \n\t x \n\n",
    "unicode": "h\u00e9llo \u4e16\u754c \U0001f600 \u2028 \u0085 \ufffd\n", "quotes": "\"a\" 'b' `c` \\ \\n\n",
    "html": "<a href='x'>&amp;</a></script>\n", "template": hostile + "\n", "controls": "\x00\x07\b\f\r\n\x1b[31m\x7f\t\n",
    "just shown": ["x", 9999], "just cut": ["x", 10000], "cut": ["line \u00e9\n", 4000], "cut emoji": ["\U0001f600<'", 5001],
}


def expand(value):
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], int) and isinstance(value[0], str):
        return value[0] * value[1]
    if isinstance(value, dict):
        return {k: expand(v) for k, v in value.items()}
    return value


def observations():
    limits = {"step_limit": 1000, "n_model_calls": 7, "wall_time_limit_seconds": 21600, "elapsed_seconds": 60}
    for text in outputs.values():
        yield {"output": {"output": text, "returncode": 0, "exception_info": ""}, **limits}
    for text, code, info in [
        ("error: 1\n", 1, ""), ("", -1, "killed after 30 s: 'sleep 9' <\"&>"), (outputs["cut"], 124, "\u00e9\n" + hostile),
    ]:
        yield {"output": {"output": text, "returncode": code, "exception_info": info}, **limits}
    for near in [
        {"n_model_calls": 980}, {"n_model_calls": 981}, {"n_model_calls": 1000}, {"elapsed_seconds": 21000}, {"elapsed_seconds": 21001},
        {"elapsed_seconds": 21599, "n_model_calls": 999}, {"elapsed_seconds": 21700}, {"step_limit": 0, "wall_time_limit_seconds": 0},
    ]:
        yield {"output": {"output": "ok\n", "returncode": 0, "exception_info": ""}, **limits, **near}


def errors():
    for error, actions, reason, calls in [
        ("No call.", [], "stop", False), ("No call.", [], "length", False), ("Bad call.", [], "tool_calls", True),
        ("Cut.", [], "tool_calls", False), ("Two.", ["a", "b"], "stop", False), (hostile + " <\"'&>\u00e9", [hostile], "stop", True),
        ("", [], "", False),
    ]:
        yield {"error": error, "actions": actions, "finish_reason": reason, "has_tool_calls": calls}
    yield {"error": "No reason.", "actions": [], "has_tool_calls": False}


def prompts():
    host = {"system": "Linux", "release": "6.1.0", "version": "#1 SMP", "machine": "x86_64"}
    for task in ["Fix it.", "", "h\u00e9 \U0001f600\n\n", hostile, "<'&\">\\", ["long ", 3000]]:
        yield {"task": task, **host}
    yield {"task": "x", **host, "system": "Darwin"}


def render(template, values):
    try:
        text = jinja2.Template(template, undefined=jinja2.StrictUndefined).render(**expand(values))
    except (jinja2.exceptions.TemplateError, TypeError, ArithmeticError) as e:
        return {"error": type(e).__name__}
    data = text.encode()
    return {"text": text} if len(data) <= 1500 else {"sha256": hashlib.sha256(data).hexdigest()}


def write(name, cases):
    lines = ",\n".join(json.dumps(c, ensure_ascii=True) for c in cases)
    (golden / (name + ".json")).write_text("[\n" + lines + "\n]\n")
    print(f"{name}: {len(cases)}")


golden.mkdir(exist_ok=True)
for path in sorted((root / "configs" / "testdata" / "peer").glob("*.yaml")):
    config = yaml.safe_load(path.read_text())
    cases = []
    for key, values in [
        ("agent.system_template", list(prompts())[:1]), ("agent.instance_template", prompts()),
        ("model.observation_template", observations()), ("model.format_error_template", errors()),
    ]:
        section, _, name = key.partition(".")
        template = config.get(section, {}).get(name)
        if template is not None:
            cases += [{"template": key, "vars": v, **render(template, v)} for v in values]
    if cases:
        write(path.stem, cases)

values = {
    "s": "a<b>&'\"\u00e9\u2028\x00\x1f\U0001f600\\/ \n", "n": 3, "f": 3.5, "t": True, "nil": None, "e": "", "lst": ["a", "b", "c"],
    "d": {"b": [1, 2.5, None], "a": "x'y", "c": {}}, "lines": "one\ntwo\r\nthree", "long": ["\u00e9", 20000], "code": hostile,
}
constructs = (golden / "constructs.txt").read_text().splitlines()


def unescape(match):
    code = match[1]
    return chr(int(code[1:], 16)) if code[0] == "u" else {"n": "\n", "r": "\r"}.get(code, code)


templates = [
    re.sub(r"\\(u[0-9a-f]{4}|.)", unescape, line) for line in constructs if line and not line.startswith("## ")
]
write("constructs", [{"text_of": t, "vars": values if i == 0 else None, **render(t, values)} for i, t in enumerate(templates)])
