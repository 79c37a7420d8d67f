"""A small agent: asks the model in one dialect and runs the commands of its replies. For calls of
the tool task it runs itself at the same time, as subagents, which end with a reply without calls.
Usage: agent.py DIALECT (stream|plain) [text]   The task is on standard input."""
import json, os, re, subprocess, sys, urllib.request

dialect, stream, as_text = sys.argv[1], sys.argv[2] == "stream", "text" in sys.argv[3:]
task = sys.stdin.read()
schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
task_schema = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
log, is_child, children = os.environ.get("AGENT_LOG", "/tmp/agent.json"), "AGENT_CHILD" in os.environ, 0
url, key = os.environ["MINI_URL"], os.environ["MINI_TOKEN"]
history = []

def post(path, body, headers):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request) as response:
        if not stream:
            return json.load(response)
        events = []
        for line in response:
            data = line.decode().strip()
            if data.startswith("data:") and data != "data: [DONE]":
                events.append(json.loads(data[5:]))
        return events

def chat():
    tools = {} if as_text else {"tools": [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in (("bash", schema), ("task", task_schema))]}
    answer = post("/v1/chat/completions", {"model": "mine", "messages": history, "stream": stream, **tools}, {"Authorization": "Bearer " + key})
    if not stream:
        message = answer["choices"][0]["message"]
    else:
        message = {"role": "assistant", "content": "", "tool_calls": []}
        for event in answer:
            assert event["choices"], "a usage chunk that was not asked for"
            delta = event["choices"][0]["delta"]
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls", []):
                if call["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append({"id": call["id"], "type": "function", "function": {"name": call["function"]["name"], "arguments": ""}})
                else:
                    message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        if not message["tool_calls"]:
            del message["tool_calls"]
    history.append(message)
    return [(c["id"], json.loads(c["function"]["arguments"])) for c in message.get("tool_calls") or []], message.get("content") or ""

def messages():
    body = {"model": "mine", "max_tokens": 4096, "messages": history, "stream": stream, "tools": [{"name": "bash", "input_schema": schema}, {"name": "task", "input_schema": task_schema}]}
    answer = post("/v1/messages?beta=true", body, {"X-Api-Key": key, "Anthropic-Version": "2023-06-01"})
    if not stream:
        blocks = answer["content"]
    else:
        blocks = []
        for event in answer:
            if event["type"] == "content_block_start":
                blocks.append(dict(event["content_block"], partial=""))
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                blocks[event["index"]]["partial"] += delta.get("text") or delta.get("partial_json") or ""
        assert answer[-1]["type"] == "message_stop"
        for block in blocks:
            partial = block.pop("partial")
            if block["type"] == "text":
                block["text"] += partial
            else:
                block["input"] = json.loads(partial or "{}")
    history.append({"role": "assistant", "content": blocks})
    return [(b["id"], b["input"]) for b in blocks if b["type"] == "tool_use"], "".join(b.get("text", "") for b in blocks)

def responses():
    body = {"model": "mine", "input": history, "stream": stream, "tools": [{"type": "function", "name": "bash", "parameters": schema}, {"type": "function", "name": "task", "parameters": task_schema}, {"type": "web_search"}]}
    answer = post("/v1/responses", body, {"Authorization": "Bearer " + key})
    if stream:
        answer = answer[-1]["response"]
    history.extend(answer["output"])
    calls = [(i["call_id"], json.loads(i["arguments"])) for i in answer["output"] if i["type"] == "function_call"]
    return calls, "".join(p["text"] for i in answer["output"] if i["type"] == "message" for p in i["content"])

def gemini():
    body = {"contents": history, "tools": [{"functionDeclarations": [{"name": "bash", "parameters": schema}, {"name": "task", "parameters": task_schema}]}]}
    path = "/v1beta/models/mine:" + ("streamGenerateContent?alt=sse" if stream else "generateContent")
    answer = post(path, body, {"X-Goog-Api-Key": key})
    parts = [p for a in (answer if stream else [answer]) for p in a["candidates"][0]["content"]["parts"]]
    history.append({"role": "model", "parts": parts})
    return [(p["functionCall"]["name"], p["functionCall"]["args"]) for p in parts if "functionCall" in p], "".join(p.get("text", "") for p in parts)

def end():
    with open(log, "w") as f:
        json.dump(history, f)
    sys.exit(0)

def start(prompt):
    global children
    children += 1
    child = subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=dict(os.environ, AGENT_CHILD="1", AGENT_LOG="%s.%d" % (log, children)))
    child.stdin.write(prompt.encode())
    child.stdin.close()
    return child

def result(call, output):
    if as_text:
        history.append({"role": "user", "content": output})
    elif dialect == "chat":
        history.append({"role": "tool", "tool_call_id": call, "content": output})
    elif dialect == "responses":
        history.append({"type": "function_call_output", "call_id": call, "output": output})
    elif dialect == "messages" and history[-1]["role"] == "user":  # the results of one reply are one message
        history[-1]["content"].append({"type": "tool_result", "tool_use_id": call, "content": output})
    elif dialect == "messages":
        history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output}]})
    else:
        history.append({"role": "user", "parts": [{"functionResponse": {"name": call, "response": {"output": output}}}]})

history.append({"role": "user", "parts": [{"text": task}]} if dialect == "gemini" else {"role": "user", "content": task})
for _ in range(50):
    calls, text = globals()[dialect]()
    if as_text:
        calls = [("", {"command": c}) for c in re.findall(r"```bash\n(.*?)\n```", text, re.S)[:1]]
    done = not calls
    if done and is_child:
        print(text, end="")
        end()
    if done:
        result("", "No command was found.") if as_text else history.append(
            {"role": "user", "parts": [{"text": "Go on."}]} if dialect == "gemini" else {"role": "user", "content": "Go on."})
    calls = [(call, start(arguments["prompt"]) if "prompt" in arguments else arguments["command"]) for call, arguments in calls]
    for call, command in calls:
        if isinstance(command, subprocess.Popen):
            result(call, command.stdout.read().decode())
            command.wait()
            continue
        try:
            output = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60).stdout.decode()
        except subprocess.TimeoutExpired:
            output = "timed out"
        if output.startswith("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"):
            end()
        result(call, output)
