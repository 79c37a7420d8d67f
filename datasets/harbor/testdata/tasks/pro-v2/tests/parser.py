import json
import re
import sys

passed = {m.group(1) for m in re.finditer(r"^(\w+) \(.*\.\.\. ok$", open(sys.argv[1]).read(), re.M)}
config = json.load(open("/tests/config.json"))
print(int(passed >= set(config["fail_to_pass"] + config["pass_to_pass"])))
