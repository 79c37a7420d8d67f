# Used by the tests of both steps: FILE WORD.
[ "$(cat "/app/$1" 2>/dev/null)" = "$2" ] && r=1
echo "${r:-0}" > /logs/verifier/reward.txt
