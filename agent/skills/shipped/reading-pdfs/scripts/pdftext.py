#!/usr/bin/env python3
"""Prints the text of a PDF, with Python's standard library alone.

    pdftext.py [--pages 1-3,7] [--info] FILE

Each page begins with "--- page N ---". It is for machines without poppler, which
does better with columns and tables. It scans the file for objects, so that a
damaged table of contents does not matter. No pictures, no decryption.
Exit: 0 done, 1 no text found, 2 bad usage or no PDF, 3 encrypted.
"""
import re
import struct
import sys
import zlib

MAX_STREAM = 100 << 20  # bytes that one stream may become


class Name(str):
    pass


class Ref(tuple):
    pass


class Word(bytes):
    """An operator, or another word without quotes."""


class Stream:
    def __init__(self, dict_, raw):
        self.dict, self.raw = dict_, raw


SPACE = b"\x00\t\n\x0c\r "
DELIMITERS = b"()<>[]{}/%"
ESCAPES = {110: 10, 114: 13, 116: 9, 98: 8, 102: 12}


class Parser:
    """Reads objects out of bytes."""

    def __init__(self, data, pos=0, refs=True):
        self.data, self.pos, self.refs = data, pos, refs

    def skip(self):
        d, n = self.data, len(self.data)
        while self.pos < n:
            c = d[self.pos]
            if c in SPACE:
                self.pos += 1
            elif c == 37:  # a comment
                while self.pos < n and d[self.pos] not in b"\r\n":
                    self.pos += 1
            else:
                return True
        return False

    def next(self, depth=0):
        """The next object; None is null, EOFError the end."""
        if not self.skip() or depth > 60:
            raise EOFError
        d = self.data
        c = d[self.pos]
        if c == 47:
            return self.name()
        if c == 40:
            return self.literal()
        if d[self.pos:self.pos + 2] == b"<<":
            return self.dictionary(depth)
        if c == 60:
            return self.hexadecimal()
        if c == 91:
            self.pos += 1
            items = []
            while self.skip() and d[self.pos] != 93:
                items.append(self.next(depth + 1))
            self.pos += 1
            return items
        if c in DELIMITERS:
            self.pos += 2 if d[self.pos:self.pos + 2] == b">>" else 1
            return Word(bytes([c]))
        word = self.word()
        m = re.match(rb"[+-]*\d*\.?\d*$", word)
        if m and any(48 <= x <= 57 for x in word):
            try:
                number = float(word) if b"." in word else int(word)
            except ValueError:
                number = 0
            if self.refs and isinstance(number, int) and number >= 0:
                r = re.compile(rb"[\x00\t\n\x0c\r ]+(\d+)[\x00\t\n\x0c\r ]+R(?![A-Za-z0-9])").match(d, self.pos)
                if r:
                    self.pos = r.end()
                    return Ref((number, int(r.group(1))))
            return number
        return {b"true": True, b"false": False, b"null": None}.get(bytes(word), word)

    def word(self):
        start, d, n = self.pos, self.data, len(self.data)
        while self.pos < n and d[self.pos] not in SPACE and d[self.pos] not in DELIMITERS:
            self.pos += 1
        return Word(d[start:self.pos])

    def name(self):
        self.pos += 1
        raw = bytes(self.word())
        raw = re.sub(rb"#([0-9A-Fa-f]{2})", lambda m: bytes([int(m.group(1), 16)]), raw)
        return Name(raw.decode("latin-1"))

    def literal(self):
        d, n, out, depth = self.data, len(self.data), bytearray(), 1
        self.pos += 1
        while self.pos < n:
            c = d[self.pos]
            self.pos += 1
            if c == 92 and self.pos < n:
                e = d[self.pos]
                self.pos += 1
                if e in ESCAPES:
                    out.append(ESCAPES[e])
                elif 48 <= e <= 55:
                    m = re.compile(rb"[0-7]{1,3}").match(d, self.pos - 1)
                    self.pos = m.end()
                    out.append(int(m.group(), 8) & 255)
                elif e == 13:
                    self.pos += d[self.pos:self.pos + 1] == b"\n"
                elif e != 10:
                    out.append(e)
                continue
            depth += (c == 40) - (c == 41)
            if depth == 0:
                break
            out.append(c)
        return bytes(out)

    def hexadecimal(self):
        end = self.data.find(b">", self.pos)
        end = len(self.data) if end < 0 else end
        digits = re.sub(rb"[^0-9A-Fa-f]", b"", self.data[self.pos + 1:end])
        self.pos = end + 1
        return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())

    def dictionary(self, depth):
        self.pos += 2
        out = {}
        while self.skip():
            if self.data[self.pos:self.pos + 2] == b">>":
                self.pos += 2
                break
            key = self.next(depth + 1)
            if not isinstance(key, Name):
                continue  # damaged
            if self.skip() and self.data[self.pos:self.pos + 2] == b">>":
                continue
            out[key] = self.next(depth + 1)
        return out


class PDF:
    def __init__(self, data):
        self.data, self.objects, self.trailer = data, {}, {}
        self.fonts = {}
        self.scan()

    def scan(self):
        """Finds all objects; of two with one number the later counts."""
        head = re.compile(rb"(?<![0-9])(\d{1,10})[\x00\t\n\x0c\r ]+(\d{1,5})[\x00\t\n\x0c\r ]+obj(?![a-z])|trailer(?=[\x00\t\n\x0c\r ]*<<)")
        pos, containers = 0, []
        while True:
            m = head.search(self.data, pos)
            if not m:
                break
            p = Parser(self.data, m.end())
            pos = m.end()
            try:
                obj = p.next()
            except (EOFError, RecursionError):
                continue
            if m.group(1) is None:
                if isinstance(obj, dict):
                    self.trailer.update(obj)
                pos = p.pos
                continue
            pos = max(pos, p.pos)
            if isinstance(obj, dict):
                s = re.compile(rb"[\x00\t\n\x0c\r ]*stream(\r\n|\n|\r)?").match(self.data, p.pos)
                if s:
                    raw, pos = self.stream(obj, s.end())
                    obj = Stream(obj, raw)
                    if obj.dict.get("Type") == "ObjStm":
                        containers.append(obj)
                    elif obj.dict.get("Type") == "XRef":
                        self.trailer.update({k: v for k, v in obj.dict.items() if k in ("Root", "Info", "Encrypt", "ID")})
            number = int(m.group(1))
            self.objects[number] = obj
        for c in containers if "Encrypt" not in self.trailer else ():
            self.unpack(c)

    def stream(self, d, start):
        length = d.get("Length")
        if isinstance(length, Ref):
            m = re.search(rb"(?<![0-9])%d[ \r\n]+%d[ \r\n]+obj[ \r\n]+(\d+)" % length, self.data)
            length = int(m.group(1)) if m else None
        if isinstance(length, int) and 0 <= length <= len(self.data) - start:
            end = start + length
            if re.compile(rb"[\x00\t\n\x0c\r ]*endstream").match(self.data, end):
                return self.data[start:end], end
        end = self.data.find(b"endstream", start)
        end = len(self.data) if end < 0 else end
        return self.data[start:end], end

    def unpack(self, s):
        """Takes the objects out of a stream of objects."""
        data = self.content(s)
        p = Parser(data)
        try:
            pairs = [(p.next(), p.next()) for _ in range(min(int(self.get(s.dict.get("N"), 0)), 100000))]
        except (EOFError, TypeError, ValueError):
            return
        first = self.get(s.dict.get("First"), 0)
        for number, offset in pairs:
            try:
                if isinstance(number, int) and isinstance(offset, int):
                    obj = Parser(data, first + offset).next()
                    if not isinstance(self.objects.get(number), Stream):
                        self.objects[number] = obj
            except (EOFError, TypeError):
                continue

    def get(self, obj, default=None):
        for _ in range(20):
            if not isinstance(obj, Ref):
                break
            obj = self.objects.get(obj[0])
        return default if obj is None else obj

    def dict(self, obj):
        obj = self.get(obj)
        if isinstance(obj, Stream):
            return obj.dict
        return obj if isinstance(obj, dict) else {}

    def content(self, s):
        """The bytes of a stream, without its filters."""
        data = s.raw
        filters = self.get(s.dict.get("Filter"), [])
        params = self.get(s.dict.get("DecodeParms"), [])
        filters = filters if isinstance(filters, list) else [filters]
        params = params if isinstance(params, list) else [params]
        for i, f in enumerate(filters):
            f = self.get(f)
            if f in ("FlateDecode", "Fl"):
                data = inflate(data)
            elif f in ("ASCIIHexDecode", "AHx"):
                data = Parser(b"<" + data.split(b">")[0] + b">").hexadecimal()
            elif f in ("ASCII85Decode", "A85"):
                data = ascii85(data)
            elif f in ("LZWDecode", "LZW"):
                data = lzw(data, self.dict(params[i] if i < len(params) else None).get("EarlyChange", 1))
            elif f in ("RunLengthDecode", "RL"):
                data = runs(data)
            else:
                return b""  # a picture
            data = unpredict(data, {k: self.get(v) for k, v in self.dict(params[i] if i < len(params) else None).items()})
        return data

    def pages(self):
        """Pages in order, each with what it inherits."""
        root = self.dict(self.trailer.get("Root"))
        if "Pages" not in root:
            found = [o for o in self.objects.values() if isinstance(o, dict) and o.get("Type") == "Catalog"]
            root = found[-1] if found else {}
        out, seen = [], set()

        def walk(ref, inherited, depth):
            node = self.dict(ref)
            if not node or depth > 60 or (isinstance(ref, Ref) and ref in seen) or len(out) > 50000:
                return
            if isinstance(ref, Ref):
                seen.add(ref)
            merged = dict(inherited)
            merged.update({k: v for k, v in node.items() if k in ("Resources",)})
            kids = self.get(node.get("Kids"))
            if isinstance(kids, list) and node.get("Type") != "Page":
                for kid in kids:
                    walk(kid, merged, depth + 1)
            else:
                out.append(dict(merged, **node))

        walk(root.get("Pages"), {}, 0)
        if not out:
            out = [o for _, o in sorted(self.objects.items()) if isinstance(o, dict) and o.get("Type") == "Page"]
        return out

    def text(self, page):
        contents = self.get(page.get("Contents"))
        parts = contents if isinstance(contents, list) else [contents]
        data = b"\n".join(self.content(s) for s in map(self.get, parts) if isinstance(s, Stream))
        t = Text(self)
        t.run(data, self.dict(page.get("Resources")), 0)
        return t.result()

    def font(self, ref):
        key = ref if isinstance(ref, Ref) else id(ref)
        if key not in self.fonts:
            self.fonts[key] = Font(self, self.dict(ref))
        return self.fonts[key]


def inflate(data):
    for wbits in (15, -15):
        d = zlib.decompressobj(wbits)
        out = bytearray()
        try:
            for i in range(0, len(data), 4096):  # so that what comes before a damage counts
                out += d.decompress(data[i:i + 4096], MAX_STREAM - len(out))
                if d.eof or len(out) >= MAX_STREAM:
                    break
        except zlib.error:
            pass
        if out:
            return bytes(out)
    return b""


def ascii85(data):
    data = re.sub(rb"\s", b"", data.split(b"~>")[0])
    if data.startswith(b"<~"):
        data = data[2:]
    out, group = bytearray(), []
    for c in data:
        if c == 122 and not group:
            out += b"\0\0\0\0"
        elif 33 <= c <= 117:
            group.append(c - 33)
            if len(group) == 5:
                out += struct.pack(">Q", sum(g * 85 ** (4 - i) for i, g in enumerate(group)))[4:]
                group = []
    if len(group) > 1:
        n = len(group)
        group += [84] * (5 - n)
        out += struct.pack(">Q", sum(g * 85 ** (4 - i) for i, g in enumerate(group)))[4:][:n - 1]
    return bytes(out)


def lzw(data, early):
    early = 1 if early is None else early
    out, table, previous = bytearray(), None, None
    width, buffer, have = 9, 0, 0
    for byte in data:
        buffer, have = (buffer << 8 | byte) & 0xFFFFFF, have + 8
        if have < width:
            continue
        have -= width
        code = buffer >> have & ((1 << width) - 1)
        if code == 256 or table is None:
            table, width, previous = [bytes([i]) for i in range(256)] + [b"", b""], 9, None
            if code == 256:
                continue
        if code == 257:
            break
        if code < len(table):
            entry = table[code]
        elif previous is not None:
            entry = previous + previous[:1]
        else:
            break
        out += entry
        if len(out) > MAX_STREAM:
            break
        if previous is not None and len(table) < 4096:
            table.append(previous + entry[:1])
        previous = entry
        size = len(table) + early
        width = 9 if size < 512 else 10 if size < 1024 else 11 if size < 2048 else 12
    return bytes(out)


def runs(data):
    out, i = bytearray(), 0
    while i < len(data) and data[i] != 128 and len(out) < MAX_STREAM:
        n = data[i]
        if n < 128:
            out += data[i + 1:i + 2 + n]
            i += n + 2
        else:
            out += data[i + 1:i + 2] * (257 - n)
            i += 2
    return bytes(out)


def unpredict(data, params):
    kind = params.get("Predictor", 1)
    if not isinstance(kind, int) or kind < 10:
        return data
    colors, bits = params.get("Colors", 1), params.get("BitsPerComponent", 8)
    row = (params.get("Columns", 1) * colors * bits + 7) // 8
    bpp = max(1, colors * bits // 8)
    out, before = bytearray(), bytearray(row)
    for i in range(0, len(data) - row, row + 1):
        f, line = data[i], bytearray(data[i + 1:i + 1 + row])
        for x in range(row):
            a = line[x - bpp] if x >= bpp else 0
            b, c = before[x], before[x - bpp] if x >= bpp else 0
            if f == 1:
                line[x] = (line[x] + a) & 255
            elif f == 2:
                line[x] = (line[x] + b) & 255
            elif f == 3:
                line[x] = (line[x] + (a + b) // 2) & 255
            elif f == 4:
                p = a + b - c
                near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                line[x] = (line[x] + near) & 255
        out += line
        before = line
    return bytes(out)


# Names of characters that are not a letter themselves.
GLYPHS = dict(zip(
    ("space exclam quotedbl numbersign dollar percent ampersand quotesingle parenleft parenright asterisk plus comma "
     "hyphen period slash zero one two three four five six seven eight nine colon semicolon less equal greater question at "
     "bracketleft backslash bracketright asciicircum underscore grave braceleft bar braceright asciitilde").split(),
    " !\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~"))
GLYPHS.update(
    fi="fi", fl="fl", ff="ff", ffi="ffi", ffl="ffl", bullet="\u2022", endash="\u2013", emdash="\u2014", quoteleft="\u2018",
    quoteright="\u2019", quotedblleft="\u201c", quotedblright="\u201d", quotesinglbase="\u201a", quotedblbase="\u201e",
    ellipsis="\u2026", dagger="\u2020", daggerdbl="\u2021", section="\u00a7", paragraph="\u00b6", copyright="\u00a9",
    registered="\u00ae", trademark="\u2122", degree="\u00b0", plusminus="\u00b1", multiply="\u00d7", divide="\u00f7", minus="\u2212",
    mu="\u00b5", germandbls="\u00df", dotlessi="\u0131", ae="\u00e6", AE="\u00c6", oe="\u0153", OE="\u0152", oslash="\u00f8",
    Oslash="\u00d8", guillemotleft="\u00ab", guillemotright="\u00bb", Euro="\u20ac", sterling="\u00a3", yen="\u00a5", cent="\u00a2",
    nbspace=" ", periodcentered="\u00b7", onehalf="\u00bd", onequarter="\u00bc", threequarters="\u00be", summation="\u2211",
    infinity="\u221e", lessequal="\u2264", greaterequal="\u2265", notequal="\u2260", arrowright="\u2192", partialdiff="\u2202")
GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma1 sigma tau upsilon phi chi psi omega".split()
for _i, _n in enumerate(GREEK):
    GLYPHS.setdefault(_n, chr(0x3B1 + _i))
    GLYPHS.setdefault(_n.capitalize(), chr(0x391 + _i))
ACCENTS = {"grave": "\u0300", "acute": "\u0301", "circumflex": "\u0302", "tilde": "\u0303", "dieresis": "\u0308", "ring": "\u030a",
           "cedilla": "\u0327", "caron": "\u030c", "breve": "\u0306", "macron": "\u0304", "ogonek": "\u0328", "dotaccent": "\u0307"}


def glyph(name):
    """The text of a glyph by its name; None where nobody knows."""
    import unicodedata
    name = name.split(".")[0] if not name.startswith(".") else name
    if name in GLYPHS:
        return GLYPHS[name]
    if len(name) == 1:
        return name
    m = re.match(r"uni([0-9A-F]{4})+$|u([0-9A-F]{4,6})$", name)
    if m:
        digits = name[3:] if name.startswith("uni") else name[1:]
        size = 4 if name.startswith("uni") else len(digits)
        return "".join(chr(min(int(digits[i:i + size], 16), 0x10FFFF)) for i in range(0, len(digits), size))
    for accent, mark in ACCENTS.items():
        if name.endswith(accent) and len(name) == len(accent) + 1:
            return unicodedata.normalize("NFC", name[0] + mark)
    return None


class Font:
    """What the codes of a font mean, and how wide they are."""

    def __init__(self, pdf, d):
        self.composite = d.get("Subtype") == "Type0"
        self.map, self.sizes, self.widths = {}, {2} if self.composite else {1}, {}
        self.default = 500.0
        u = pdf.get(d.get("ToUnicode"))
        if isinstance(u, Stream):
            self.cmap(pdf.content(u))
        scale = 1.0
        if d.get("Subtype") == "Type3":
            matrix = pdf.get(d.get("FontMatrix"), [0.001])
            scale = abs(number(pdf.get(matrix[0]), 0.001)) * 1000 if isinstance(matrix, list) and matrix else 1.0
        if self.composite:
            kids = pdf.get(d.get("DescendantFonts"), [None])
            kid = pdf.dict(kids[0] if isinstance(kids, list) and kids else None)
            self.default = number(pdf.get(kid.get("DW")), 1000)
            self.wide(pdf, pdf.get(kid.get("W"), []))
        else:
            first = int(number(pdf.get(d.get("FirstChar")), 0))
            for i, w in enumerate(pdf.get(d.get("Widths"), []) or []):
                self.widths[first + i] = number(pdf.get(w), 500) * scale
            self.encoding(pdf, d)

    def wide(self, pdf, w):
        i = 0
        while i + 1 < len(w):
            a, b = pdf.get(w[i]), pdf.get(w[i + 1])
            if isinstance(b, list):
                for k, v in enumerate(b):
                    self.widths[int(a) + k] = number(pdf.get(v), 1000)
                i += 2
            elif i + 2 < len(w):
                v = number(pdf.get(w[i + 2]), 1000)
                for k in range(int(a), min(int(b), int(a) + 70000) + 1):
                    self.widths[k] = v
                i += 3
            else:
                break

    def encoding(self, pdf, d):
        e = pdf.get(d.get("Encoding"))
        base = e.get("BaseEncoding") if isinstance(e, dict) else e
        table = {"MacRomanEncoding": "mac_roman"}.get(base, "cp1252")
        self.table = {}
        for c in range(256):
            self.table[c] = bytes([c]).decode(table, "replace")
        if base not in ("WinAnsiEncoding", "MacRomanEncoding"):
            self.table.update({39: "\u2019", 96: "\u2018", 174: "fi", 175: "fl"} if isinstance(base, str) and base == "StandardEncoding" else {})
        code = 0
        for item in (pdf.get(e.get("Differences"), []) if isinstance(e, dict) else []):
            item = pdf.get(item)
            if isinstance(item, Name):
                text = glyph(item)
                self.table[code] = "\ufffd" if text is None else text
                code += 1
            elif isinstance(item, (int, float)):
                code = int(item)

    def cmap(self, data):
        """ToUnicode: codes and what they stand for."""
        p, stack = Parser(data, refs=False), []

        def text(raw):
            return raw.decode("utf-16-be", "replace") if isinstance(raw, bytes) else ""
        try:
            while True:
                o = p.next()
                if not isinstance(o, Word):
                    stack.append(o)
                    continue
                if o == b"endcodespacerange":
                    sizes = {len(s) for s in stack if isinstance(s, bytes) and not isinstance(s, Word) and s}
                    if sizes and self.composite:
                        self.sizes = sizes
                elif o == b"endbfchar":
                    for code, to in zip(stack[0::2], stack[1::2]):
                        if isinstance(code, bytes):
                            self.map[(len(code), int.from_bytes(code, "big"))] = text(to)
                elif o == b"endbfrange":
                    for lo, hi, to in zip(stack[0::3], stack[1::3], stack[2::3]):
                        if not isinstance(lo, bytes) or not isinstance(hi, bytes):
                            continue
                        size, a, b = len(lo), int.from_bytes(lo, "big"), int.from_bytes(hi, "big")
                        for k in range(a, min(b, a + 65535) + 1):
                            if isinstance(to, list):
                                if k - a < len(to):
                                    self.map[(size, k)] = text(to[k - a])
                            elif isinstance(to, bytes) and to:
                                last = int.from_bytes(to[-2:], "big") + k - a
                                self.map[(size, k)] = text(to[:-2] + (last & 0xFFFF).to_bytes(2, "big"))
                stack = []
        except EOFError:
            pass

    def decode(self, raw):
        """(text, width in thousandths, is a space) of each code."""
        i = 0
        while i < len(raw):
            for size in sorted(self.sizes):
                code = int.from_bytes(raw[i:i + size], "big")
                if (size, code) in self.map or size == max(self.sizes):
                    break
            text = self.map.get((size, code))
            if text is None and not self.composite:
                text = self.map.get((2, code)) or self.table.get(code, "\ufffd")
            if text is None:
                text = "\ufffd"
            yield text, self.widths.get(code, self.default), size == 1 and code == 32
            i += size


def number(x, default=0.0):
    return float(x) if isinstance(x, (int, float)) and not isinstance(x, bool) else default


def times(a, b):
    return (a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3],
            a[4] * b[0] + a[5] * b[2] + b[4], a[4] * b[1] + a[5] * b[3] + b[5])


SAME = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class Text:
    """Runs the program of a page, and keeps what it shows and where."""

    def __init__(self, pdf):
        self.pdf, self.pieces, self.ops = pdf, [], 0

    def run(self, data, resources, depth, ctm=SAME):
        pdf, p, args, saved = self.pdf, Parser(data, refs=False), [], []
        fonts, forms = pdf.dict(resources.get("Font")), pdf.dict(resources.get("XObject"))
        font, size, lead, rise, wide, char, word = None, 12.0, 0.0, 0.0, 1.0, 0.0, 0.0
        tm = line = SAME

        def show(raw):
            nonlocal tm
            if not isinstance(raw, bytes) or font is None:
                return
            start, out, x = times((size * wide, 0, 0, size, 0, rise), times(tm, ctm)), [], 0.0
            for text, w, blank in font.decode(raw):
                out.append(text)
                x += (w / 1000 * size + char + (word if blank else 0)) * wide
            tm = times((1, 0, 0, 1, x, 0), tm)
            end = times(tm, ctm)
            self.add("".join(out), start, end)

        def move(x, y):
            nonlocal tm, line
            line = times((1, 0, 0, 1, x, y), line)
            tm = line

        while True:
            try:
                o = p.next()
            except (EOFError, RecursionError):
                return
            if not isinstance(o, Word):
                args.append(o)
                if len(args) > 1000:
                    args = args[-100:]
                continue
            self.ops += 1
            if self.ops > 5000000:
                return
            n = [number(a) for a in args]
            try:
                if o == b"BT":
                    tm = line = SAME
                elif o == b"Tf":
                    font, size = pdf.font(fonts[args[-2]]) if args[-2] in fonts else None, n[-1]
                elif o == b"Tm":
                    tm = line = tuple(n[-6:])
                elif o == b"Td":
                    move(n[-2], n[-1])
                elif o == b"TD":
                    lead = -n[-1]
                    move(n[-2], n[-1])
                elif o == b"T*":
                    move(0, -lead)
                elif o == b"TL":
                    lead = n[-1]
                elif o == b"Tc":
                    char = n[-1]
                elif o == b"Tw":
                    word = n[-1]
                elif o == b"Tz":
                    wide = n[-1] / 100
                elif o == b"Ts":
                    rise = n[-1]
                elif o == b"Tj":
                    show(args[-1])
                elif o == b"'":
                    move(0, -lead)
                    show(args[-1])
                elif o == b'"':
                    word, char = n[-3], n[-2]
                    move(0, -lead)
                    show(args[-1])
                elif o == b"TJ":
                    for a in args[-1]:
                        if isinstance(a, bytes):
                            show(a)
                        else:
                            tm = times((1, 0, 0, 1, -number(a) / 1000 * size * wide, 0), tm)
                elif o == b"q":
                    saved.append((ctm, font, size, lead, rise, wide, char, word))
                    if len(saved) > 1000:
                        return
                elif o == b"Q" and saved:
                    ctm, font, size, lead, rise, wide, char, word = saved.pop()
                elif o == b"cm":
                    ctm = times(tuple(n[-6:]), ctm)
                elif o == b"Do" and depth < 10:
                    form = pdf.get(forms.get(args[-1]))
                    if isinstance(form, Stream) and form.dict.get("Subtype") == "Form":
                        matrix = [number(pdf.get(x)) for x in pdf.get(form.dict.get("Matrix"), list(SAME))]
                        inner = pdf.dict(form.dict.get("Resources")) or resources
                        self.run(pdf.content(form), inner, depth + 1, times(tuple(matrix), ctm) if len(matrix) == 6 else ctm)
                elif o == b"BI":  # a picture in the middle of it
                    m = re.compile(rb"[\x00\t\n\x0c\r ]ID[\x00\t\n\x0c\r ].*?[\x00\t\n\x0c\r ]EI(?=[\x00\t\n\x0c\r ])", re.S).search(data, p.pos)
                    p.pos = m.end() if m else len(data)
            except (IndexError, TypeError, ValueError, KeyError, OverflowError):
                pass  # an operator without what it needs
            args = []

    def add(self, text, start, end):
        if text:
            height = abs(start[3]) or abs(start[1]) or 1.0
            self.pieces.append((start[4], start[5], end[4], height, text))

    def result(self):
        """Lines in the order of the page's program; gaps become spaces."""
        out, last = [], None
        for x, y, end, height, text in self.pieces:
            if last is not None:
                lx, ly, lend, lheight = last
                size = max(height, lheight)
                if abs(y - ly) > 0.5 * size:
                    out.append("\n\n" if ly - y > 2.2 * size else "\n")
                elif x < lx - size:
                    out.append("\n")
                elif x - lend > 2.5 * size:
                    out.append("   ")
                elif x - lend > 0.18 * size and not text.startswith(" ") and not out[-1].endswith(" "):
                    out.append(" ")
            out.append(text)
            last = (x, y, end, height)
        text = "".join(out).replace("\u00a0", " ").replace("\u00ad", "-")
        for sign, plain in (("\ufb00", "ff"), ("\ufb01", "fi"), ("\ufb02", "fl"), ("\ufb03", "ffi"), ("\ufb04", "ffl")):
            text = text.replace(sign, plain)
        text = "".join(c for c in text if c in "\n\t" or ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0)
        return "\n".join(l.rstrip() for l in text.split("\n")).strip("\n")


def wanted(spec, count):
    chosen = set()
    for part in spec.split(","):
        m = re.match(r"(\d+)(?:-(\d*))?$", part.strip())
        if not m:
            raise ValueError(spec)
        first = int(m.group(1))
        last = first if m.group(2) is None else int(m.group(2) or count)
        chosen.update(range(max(first, 1), min(last, count) + 1))
    return sorted(chosen)


def info(pdf, pages):
    def plain(raw):
        if not isinstance(raw, bytes):
            return None
        if raw[:2] in (b"\xfe\xff", b"\xff\xfe"):
            return raw.decode("utf-16", "replace")
        return raw.decode("latin-1")
    lines = ["pages: %d" % len(pages), "encrypted: %s" % ("yes" if "Encrypt" in pdf.trailer else "no")]
    for key, value in sorted(pdf.dict(pdf.trailer.get("Info")).items()):
        text = plain(pdf.get(value))
        if text:
            lines.append("%s: %s" % (key, "".join(c for c in text if c.isprintable())))
    return "\n".join(lines)


def main():
    args, pages, about = sys.argv[1:], None, False
    files = []
    while args:
        a = args.pop(0)
        if a == "--info":
            about = True
        elif a == "--pages" and args:
            pages = args.pop(0)
        elif a.startswith("-"):
            files = []
            break
        else:
            files.append(a)
    if len(files) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        with open(files[0], "rb") as f:
            data = f.read()
    except OSError as e:
        print("pdftext: %s" % e, file=sys.stderr)
        return 2
    if b"%PDF-" not in data[:1024]:
        print("pdftext: %s is no PDF" % files[0], file=sys.stderr)
        return 2
    sys.setrecursionlimit(5000)
    out = sys.stdout.buffer
    pdf = PDF(data)
    all_pages = pdf.pages()
    if about:
        out.write((info(pdf, all_pages) + "\n").encode("utf-8", "replace"))
        return 0
    if "Encrypt" in pdf.trailer:
        print("pdftext: it is encrypted; try: qpdf --password= --decrypt %s /tmp/plain.pdf" % files[0], file=sys.stderr)
        return 3
    try:
        numbers = wanted(pages, len(all_pages)) if pages else range(1, len(all_pages) + 1)
    except ValueError:
        print("pdftext: --pages: write 3, 2-5, 7- or 1,4-6", file=sys.stderr)
        return 2
    if not numbers:
        print("pdftext: it has %d pages" % len(all_pages), file=sys.stderr)
        return 2
    found = False
    for n in numbers:
        text = pdf.text(all_pages[n - 1])
        found = found or bool(text.strip())
        out.write(("--- page %d ---\n%s\n" % (n, text)).encode("utf-8", "replace"))
        out.flush()
    if not found:
        print("pdftext: no text in it: the pages may be pictures (a scan)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.exit(0)
