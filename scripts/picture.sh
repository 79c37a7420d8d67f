#!/usr/bin/env bash
# Records real runs of mini and writes them to docs/picture.svg, the demo with one wrong reply (the live view while
# both workers are busy, then the end of the output), and docs/session.svg, a session in a folder.
#
# It needs bin/mini, the images of the demo (make build images), a container engine,
# tmux, git and python3.
set -euo pipefail
cd "$(dirname "$0")/.."
docs=$PWD/docs
command='bin/mini bench --subset demo -w 2 --eval --replies wrong -o runs/demo'

tmp=$(mktemp -d)
tmux=(tmux -S "$tmp/socket" -f /dev/null)
trap '"${tmux[@]}" kill-server 2>/dev/null || true; rm -rf "$tmp"' EXIT
mkdir "$tmp/home"
ln -s "$PWD/bin" "$tmp/home/bin"

# draw FILE LABEL: writes the terminal's text on standard input as a picture.
draw() {
	python3 -c '
import html, re, sys

WIDTH, HEIGHT = 8.4, 18  # of a character of 14 pixels
COLOURS = {31: ("red", "#b3261e", "#ff8a80"), 32: ("green", "#1a7f37", "#56d364"), 33: ("yellow", "#8a6100", "#e3b341"),
           34: ("blue", "#0b57d0", "#79b8ff"), 35: ("magenta", "#8250df", "#d2a8ff"), 36: ("cyan", "#0b7285", "#76e3ea")}
lines = re.sub(r"\n{3,}", "\n\n", sys.stdin.read().rstrip()).split("\n")
body, bold, dim, colour = [], False, False, ""
for row, line in enumerate(lines):
    column, spans = 0, []
    for part in re.split(r"(\x1b\[[\d;]*m)", line):
        if part.startswith("\x1b"):
            for code in map(int, re.findall(r"\d+", part) or [0]):
                if code == 0: bold, dim, colour = False, False, ""
                elif code == 1: bold = True
                elif code == 2: dim = True
                elif code == 22: bold = dim = False
                elif code == 39: colour = ""
                elif code % 60 in COLOURS: colour = COLOURS[code % 60][0]
            continue
        for m in re.finditer(r"\S+(?: \S+)*", part):
            x, n = 16 + (column + m.start()) * WIDTH, len(m[0])
            style = " ".join(filter(None, [colour, "bold" * bold, "dim" * dim]))
            spans.append(f"<tspan x=\"{x:.1f}\" textLength=\"{n * WIDTH:.1f}\" class=\"{style}\">{html.escape(m[0])}</tspan>")
        column += len(part)
    if spans: body.append(f"<text y=\"{30 + row * HEIGHT}\">{chr(32).join(spans)}</text>".replace("</tspan> <", "</tspan><"))
w, h = 100 * WIDTH + 32, 30 + len(lines) * HEIGHT
light = "".join(f".{name}{{fill:{a}}}" for name, a, _ in COLOURS.values())
dark = "".join(f".{name}{{fill:{b}}}" for name, _, b in COLOURS.values())
print(f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h}" role="img" aria-label="{sys.argv[1]}">
<style>text{{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328;white-space:pre}}rect{{fill:#f6f8fa;stroke:#d0d7de}}
.bold{{font-weight:bold}}.dim{{fill-opacity:.65}}{light}
@media (prefers-color-scheme:dark){{text{{fill:#e6edf3}}rect{{fill:#0d1117;stroke:#30363d}}{dark}}}</style>
<rect x=".5" y=".5" width="{w - 1:.0f}" height="{h - 1}" rx="8"/>""")
print("\n".join(body) + "\n</svg>")' "$2" >"$tmp/svg"
	(($(stat -c %s "$tmp/svg") <= 60000)) || { echo "the picture has more than 60 kB" >&2; exit 1; }
	mv "$tmp/svg" "$1"
	echo "wrote $1"
}

# wait_for TEXT: waits until the terminal shows a text.
wait_for() {
	for _ in {1..100}; do
		"${tmux[@]}" capture-pane -e -p >"$tmp/now"
		if grep -qF "$1" "$tmp/now"; then return; fi
		sleep 0.1
	done
	echo "the terminal does not show: $1" >&2
	exit 1
}

"${tmux[@]}" new-session -d -x 100 -y 24 -c "$tmp/home" "$command; touch done; read -r"
until [[ -e $tmp/home/done ]]; do
	sleep 0.2
	"${tmux[@]}" capture-pane -e -p >"$tmp/now"
	if grep -q ' resolved' "$tmp/now" && grep -q 'running\|thinking' "$tmp/now" && ! grep -q idle "$tmp/now"; then cp "$tmp/now" "$tmp/live"; fi
done
"${tmux[@]}" capture-pane -e -p -S - | sed -n '/instances resolved/,$p' >"$tmp/end"
"${tmux[@]}" kill-server
{ printf '\e[2m$\e[0m %s\n' "$command"; cat "$tmp/live"; printf '\e[0m\n'; cat "$tmp/end"; } | draw "$docs/picture.svg" "a batch of mini in a terminal"

mkdir "$tmp/calc"
(
	cd "$tmp/calc"
	printf 'def add(a, b):\n    return a - b\n' >calc.py
	printf 'from calc import add\n\nassert add(1, 2) == 3\nprint("ok")\n' >test_calc.py
	git init -q . && git add . && git -c user.name=me -c user.email=me@example.com commit -qm "calc"
)
cat >"$tmp/replies.yaml" <<'END'
- content: "I run the test first.\n```bash\npython3 test_calc.py\n```"
  usage: {prompt_tokens: 900, completion_tokens: 40}
- content: "`add` **subtracts**. The operator is wrong:\n```bash\nsed -i 's/a - b/a + b/' calc.py && python3 test_calc.py\n```"
  usage: {prompt_tokens: 1100, completion_tokens: 60}
- content: "The test passes.\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"
  usage: {prompt_tokens: 1200, completion_tokens: 30}
END
"${tmux[@]}" new-session -d -x 100 -y 40 -c "$tmp/calc" env HOME="$tmp/home" "$tmp/home/bin/mini" --model-class scripted -c model.replies="$tmp/replies.yaml" -t "make the tests pass"
wait_for 'python3 test_calc.py'
wait_for 'Run this command?'
"${tmux[@]}" send-keys Enter
wait_for "sed -i"
wait_for 'Run this command?'
"${tmux[@]}" send-keys Enter
wait_for 'calc.py +1 -1'
wait_for "End the session?"
{ printf '\e[2m$\e[0m mini -t "make the tests pass"\n\n'; cat "$tmp/now"; } | draw "$docs/session.svg" "a session of mini in a terminal"
