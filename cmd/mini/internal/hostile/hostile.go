// Package hostile is for tests: texts that would take over a terminal, if it
// saw them as they are, and a judge of what is shown instead.
//
//	for _, attack := range hostile.Attacks() {
//		if trouble := hostile.Steers(show(attack.Text), 0); trouble != "" {
//			t.Errorf("%s: %s", attack.Name, trouble)
//		}
//	}
package hostile

import "strings"

// Attack is a text that does something to some terminal.
type Attack struct {
	Name, Text string
}

// Before and After are around what an attack does, so that a test can see that
// the text around it stayed.
const (
	Before = "before "
	After  = " after"
)

// Attacks is the corpus: each alone, between texts, and one after another.
func Attacks() []Attack {
	var all []Attack
	var together strings.Builder
	for _, group := range []map[string]string{operating, strs, control, escapes, eightBits, broken, unicodes, floods()} {
		for _, name := range sorted(group) {
			text := group[name]
			all = append(all, Attack{name, Before + text + After})
			together.WriteString(text)
		}
	}
	return append(all, Attack{"all of them, one after another", Before + together.String() + "\x1b\\\n" + After})
}

// Payload is in every attack that would have something run, written or pasted.
const Payload = "touch /tmp/owned"

// operating system commands.
var operating = map[string]string{
	"OSC 0 title":                        "\x1b]0;" + Payload + "\x07",
	"OSC 1 icon":                         "\x1b]1;" + Payload + "\x1b\\",
	"OSC 2 title, ended by ST":           "\x1b]2;" + Payload + "\x1b\\",
	"OSC 4 palette asked":                "\x1b]4;1;?\x07",
	"OSC 7 folder":                       "\x1b]7;file://host/tmp\x07",
	"OSC 8 link":                         "\x1b]8;;file:///etc/passwd\x1b\\https://example.org\x1b]8;;\x1b\\",
	"OSC 8 link with a line end":         "\x1b]8;;http://x\ny\x07text\x1b]8;;\x07",
	"OSC 9 notification":                 "\x1b]9;" + Payload + "\x07",
	"OSC 9;4 progress":                   "\x1b]9;4;1;50\x07",
	"OSC 10 colour asked":                "\x1b]10;?\x07",
	"OSC 11 background set":              "\x1b]11;#ff0000\x07",
	"OSC 50 font":                        "\x1b]50;#3\x07",
	"OSC 52 clipboard set":               "\x1b]52;c;dG91Y2ggL3RtcC9vd25lZAo=\x07",
	"OSC 52 clipboard asked":             "\x1b]52;c;?\x1b\\",
	"OSC 104 palette reset":              "\x1b]104\x07",
	"OSC 133 prompt":                     "\x1b]133;A\x07\x1b]133;B\x07\x1b]133;C\x07\x1b]133;D;0\x07",
	"OSC 633 command line":               "\x1b]633;E;" + Payload + "\x07",
	"OSC 777 notification":               "\x1b]777;notify;a;b\x07",
	"OSC 1337 file":                      "\x1b]1337;File=name=b3duZWQ=;size=3;inline=0:AAAA\x07",
	"OSC 1337 mark, profile, copy":       "\x1b]1337;SetMark\x07\x1b]1337;SetProfile=x\x07\x1b]1337;CopyToClipboard=\x07",
	"OSC 1337 multipart file":            "\x1b]1337;MultipartFile=name=eA==\x07\x1b]1337;FilePart=AAAA\x07\x1b]1337;FileEnd\x07",
	"OSC without a number":               "\x1b];x\x07",
	"OSC of screen's title":              "\x1bk" + Payload + "\x1b\\",
	"OSC with UTF-8 that has a 0x9c":     "\x1b]0;\u271c\u271c\x07",
	"OSC of linux that sets the palette": "\x1b]P0ff0000",
}

// strs are the other strings: DCS, APC, PM, SOS.
var strs = map[string]string{
	"DCS DECRQSS":             "\x1bP$qm\x1b\\",
	"DCS DECUDK":              "\x1bP0;1|17/746f756368\x1b\\",
	"DCS XTGETTCAP":           "\x1bP+q544e\x1b\\",
	"DCS sixel":               "\x1bPq#0;2;0;0;0#0~~@@vv@@~~$-\x1b\\",
	"DCS sixel of many lines": "\x1bPq\n#0;2;0;0;0\n#0~~\n\x1b\\",
	"DCS of tmux":             "\x1bPtmux;\x1b\x1b]52;c;AAAA\x07\x1b\\",
	"DCS of synchronized":     "\x1bP=1s\x1b\\",
	"APC kitty graphics":      "\x1b_Gf=24,s=1,v=1,a=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\",
	"APC of tmux's title":     "\x1b_" + Payload + "\x1b\\",
	"PM":                      "\x1b^" + Payload + "\x1b\\",
	"SOS":                     "\x1bX" + Payload + "\x1b\\",
}

// control sequences: of the cursor, of modes, and such as are answered.
var control = map[string]string{
	"CSI cursor up":                 "\x1b[99A",
	"CSI cursor down":               "\x1b[99B",
	"CSI cursor right":              "\x1b[99999C",
	"CSI cursor left":               "\x1b[99D",
	"CSI next and previous line":    "\x1b[3E\x1b[3F",
	"CSI column":                    "\x1b[1G\x1b[5`",
	"CSI home, and a line":          "\x1b[H\x1b[1;1f\x1b[3d",
	"CSI erase screen":              "\x1b[2J\x1b[3J\x1b[J",
	"CSI erase line":                "\x1b[2K",
	"CSI insert and delete":         "\x1b[9L\x1b[9M\x1b[9P\x1b[9@\x1b[9X",
	"CSI scroll":                    "\x1b[9S\x1b[9T",
	"CSI scroll region":             "\x1b[2;3r",
	"CSI save and restore":          "\x1b[s\x1b[u",
	"CSI repeat":                    "x\x1b[99999b",
	"CSI insert mode":               "\x1b[4h",
	"CSI line feed mode":            "\x1b[20h",
	"CSI keyboard locked":           "\x1b[2h",
	"CSI alternate screen":          "\x1b[?1049h\x1b[?47h\x1b[?1047h",
	"CSI cursor hidden":             "\x1b[?25l",
	"CSI wrap off":                  "\x1b[?7l",
	"CSI reverse screen":            "\x1b[?5h",
	"CSI 132 columns":               "\x1b[?3h",
	"CSI VT52":                      "\x1b[?2l\x1bY  \x1bZ\x1b<",
	"CSI mouse":                     "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h",
	"CSI focus":                     "\x1b[?1004h",
	"CSI bracketed paste":           "\x1b[?2004h\x1b[?2004l",
	"CSI synchronized output":       "\x1b[?2026h",
	"CSI pasted text":               "\x1b[200~" + Payload + "\n\x1b[201~",
	"CSI position asked":            "\x1b[6n\x1b[?6n\x1b[5n",
	"CSI attributes asked":          "\x1b[c\x1b[>c\x1b[=c\x1b[>q",
	"CSI mode asked":                "\x1b[?2026$p",
	"CSI parameters asked":          "\x1b[x",
	"CSI window asked":              "\x1b[14t\x1b[18t\x1b[19t\x1b[21t\x1b[20t",
	"CSI window moved":              "\x1b[3;0;0t\x1b[8;2;2t\x1b[2t\x1b[22;0t\x1b[23;0t",
	"CSI checksum asked":            "\x1b[1;1;1;1;1;1*y",
	"CSI kitty keyboard":            "\x1b[>31u\x1b[?u\x1b[<u\x1b[=5;1u",
	"CSI modify other keys":         "\x1b[>4;2m\x1b[?4m",
	"CSI soft reset":                "\x1b[!p",
	"CSI cursor shape":              "\x1b[5 q",
	"CSI printing":                  "\x1b[5i\x1b[?4i\x1b[4i",
	"CSI colour with odd signs":     "\x1b[3 m\x1b[31!m\x1b[<1m",
	"CSI hidden text":               "\x1b[8m" + Payload + "\x1b[28m",
	"CSI blinking text":             "\x1b[5;6m",
	"CSI colours without an end":    "\x1b[31;44;1m",
	"CSI colours with colons":       "\x1b[38:2::1:2:3m\x1b[4:3m\x1b[58:5:1m",
	"CSI colours cut short":         "\x1b[38;5m\x1b[48;2;1m\x1b[38;2;999;1;1m",
	"CSI number beyond all numbers": "\x1b[99999999999999999999999999m",
	"CSI colours beyond numbers":    "\x1b[1;" + strings.Repeat("1;", 500) + "31m",
	"CSI with a line end within":    "\x1b[3\n1m",
	"CSI with controls within":      "\x1b[3\x07\x08\r1m",
}

// escapes are sequences without parameters, and single controls.
var escapes = map[string]string{
	"RIS":                          "\x1bc",
	"DECALN":                       "\x1b#8",
	"double height":                "\x1b#3",
	"save and restore":             "\x1b7\x1b8",
	"index, next line, reverse":    "\x1bD\x1bE\x1bM",
	"keypad":                       "\x1b=\x1b>",
	"charset of lines":             "\x1b(0",
	"charset of UTF-8 off":         "\x1b%@\x1b%G",
	"charset locked by SO":         "\x1b)0\x0eqqqq\x0f",
	"single shift":                 "\x1bN\x1bO",
	"memory lock":                  "\x1bl\x1bm",
	"seven and eight bits":         "\x1b F\x1b G",
	"ENQ":                          "\x05",
	"BEL, BS, VT, FF":              "\x07\x08\x0b\x0c",
	"NUL and DEL":                  "\x00\x7f",
	"CAN and SUB":                  "\x18\x1a",
	"all of C0":                    "\x01\x02\x03\x04\x06\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x19\x1c\x1d\x1e\x1f",
	"carriage return over text":    "rm -rf /\rls      ",
	"backspaces over text":         "rm -rf /\b\b\b\b\b\b\b\bls      ",
	"backspaces beyond the line":   "\n" + strings.Repeat("\b", 100) + "x",
	"a tab at the end of the line": strings.Repeat("x", 79) + "\t\t",
}

// eightBits are controls of one byte, raw and as UTF-8.
var eightBits = map[string]string{
	"C1 CSI, raw":                  "\x9b31m\x9b2J\x9b6n",
	"C1 CSI":                       "\u009b31m\u009b2J\u009b6n",
	"C1 OSC, raw":                  "\x9d0;" + Payload + "\x9c",
	"C1 OSC":                       "\u009d0;" + Payload + "\u009c",
	"C1 DCS, raw":                  "\x90$qm\x9c",
	"C1 DCS":                       "\u0090$qm\u009c",
	"C1 APC, PM, SOS, raw":         "\x9fx\x9c\x9ex\x9c\x98x\x9c",
	"C1 APC, PM, SOS":              "\u009fx\u009c\u009ex\u009c\u0098x\u009c",
	"C1 NEL, IND, RI, raw":         "\x85\x84\x8d",
	"C1 NEL, IND, RI":              "\u0085\u0084\u008d",
	"C1 single shifts":             "\u008e\u008f\x8e\x8f",
	"OSC ended by a raw ST":        "\x1b]0;" + Payload + "\x9c",
	"ESC after half a character":   "\xe2\x1b[2J\xf0\x9f\x1b]0;x\x07",
	"overlong ESC":                 "\xc0\x9b[2J\xe0\x80\x9b[2J\xf0\x80\x80\x9b[2J",
	"surrogates, and beyond":       "\xed\xa0\x80\xf4\x90\x80\x80\xff\xfe",
	"bytes of Latin-1":             "caf\xe9\n\xfcber\xe9\x1b[2J",
	"CSI, its bytes after UTF-8's": "\xc2\x9b2J\xc2\xc2\x9b2J",
}

// broken are sequences that do not end, that are in each other, or are cut.
var broken = map[string]string{
	"ESC alone":                     "\x1b",
	"CSI alone":                     "\x1b[",
	"CSI cut":                       "\x1b[38;5",
	"OSC without an end":            "\x1b]0;" + Payload,
	"OSC without an end, two lines": "\x1b]0;x\n\x1b]0;y\nline",
	"DCS without an end":            "\x1bPq",
	"APC without an end":            "\x1b_G",
	"OSC in OSC":                    "\x1b]0;a\x1b]52;c;AAAA\x07b\x07",
	"OSC in CSI":                    "\x1b[3\x1b]0;x\x071m",
	"CSI in OSC":                    "\x1b]0;\x1b[2J\x07",
	"CSI in DCS":                    "\x1bP\x1b[2J\x1b\\",
	"a sequence left by removal":    "\x1b\x1b[m[2J\x1b[\x1b[m2J\x1b]\x1b]0;x\x070;y\x07",
	"many ESC":                      strings.Repeat("\x1b", 50) + "[2J",
	"OSC cut by CAN":                "\x1b]0;x\x18\x1b[2J",
	"OSC cut by CRLF":               "\x1b]0;x\r\n\x1b[2J",
	"ST alone":                      "\x1b\\\x9c",
}

// unicodes show another text than is there.
var unicodes = map[string]string{
	"bidi override":              "access = \u202e\u2066// admin\u2069 \u2066",
	"bidi marks, all":            "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
	"zero width":                 "a\u200bb\u200cc\u200dd\u2060e\ufefff",
	"joined signs":               "\U0001f468\u200d\U0001f469\u200d\U0001f467",
	"tags":                       "\U000e0001\U000e0074\U000e006f\U000e0075\U000e007f",
	"variation selectors":        "a\ufe0f\ufe00\U000e0100\U000e01ef",
	"bytes in selectors":         "a" + strings.Repeat("\U000e0123", 40),
	"fillers":                    "\u115f\u1160\u3164\uffa0\u034f\u17b4\u180e\u180b",
	"invisible operators":        "\u2061\u2062\u2063\u2064\u206a\u206f",
	"line and paragraph ends":    "a\u2028b\u2029c",
	"spaces of all kinds":        "\u00a0\u1680\u2000\u200a\u202f\u205f\u3000",
	"annotations":                "\ufff9a\ufffab\ufffb",
	"private use, no characters": "\ue000\uf8ff\U000f0000\U0010ffff\ufdd0\ufffe",
	"marks without a sign":       "\n\u0301\u0301x",
	"colours of skin":            "\U0001f44d\U0001f3fb\U0001f3ff",
	"soft hyphen":                "rm\u00ad -rf",
	"vowels of Hangul":           "\u1100" + strings.Repeat("\u1161", 60),
}

// floods are too much of something.
func floods() map[string]string {
	return map[string]string{
		"flood of marks":        "a" + strings.Repeat("\u0301\u0489\u20dd", 2000),
		"flood of BEL":          strings.Repeat("\x07", 5000),
		"flood of an OSC":       "\x1b]0;" + strings.Repeat("x", 100_000) + "\x07",
		"flood of a DCS":        "\x1bP" + strings.Repeat("x", 100_000) + "\x1b\\",
		"flood of parameters":   "\x1b[" + strings.Repeat("1;", 50_000) + "m",
		"flood of colours":      strings.Repeat("\x1b[31m\x1b[42m", 5000) + "x",
		"flood of line ends":    "\x1b[7;38;2;200;200;200m" + strings.Repeat("\n", 2000),
		"flood of wide signs":   strings.Repeat("界", 5000),
		"flood of moves":        strings.Repeat("\x1b[256Cx\r", 500),
		"flood of intermediate": "\x1b" + strings.Repeat(" ", 5000) + "F",
	}
}
