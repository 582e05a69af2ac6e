"""The stand-in for qaic: an IDL file to NAME.h, NAME_stub.c and NAME_skel.c.

Knows what upstream's IDLs are made of: structs of plain members and arrays, and one interface that
inherits remote_handle64, whose methods take `in`, `rout` and `inrout` parameters that are plain types,
structs, `string` (in only) or `sequence<T>`. Anything else is an error with its line.

On the wire, method 0 opens (URI in, handle out), 1 closes, the IDL's own are numbered from 2. Plain
inputs and the lengths of sequences are packed into the first input buffer in order, naturally aligned
(a C struct does that); each input sequence is a further buffer. Outputs likewise.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

TYPES = {
    "octet": "uint8",
    "char": "char",
    "boolean": "boolean",
    "short": "int16",
    "unsigned short": "uint16",
    "long": "int32",
    "unsigned long": "uint32",
    "long long": "int64",
    "unsigned long long": "uint64",
    "float": "float",
    "double": "double",
    "AEEResult": "AEEResult",
    **{n: n for n in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}
_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*)|(?P<word>[A-Za-z_]\w*)|(?P<number>\d+)"
    r"|(?P<mark>[{}()<>\[\];:,])",
    re.S | re.M,
)


class IdlError(Exception):
    """Something in the IDL that this stand-in does not know."""


@dataclass(frozen=True)
class Param:
    """One parameter: C type, and what it is besides plain."""

    way: str
    ctype: str
    name: str
    sequence: bool = False
    struct: bool = False
    string: bool = False


@dataclass(frozen=True)
class Method:
    """One method of the interface."""

    number: int
    name: str
    params: tuple[Param, ...]


@dataclass
class Idl:
    """What an IDL file says."""

    name: str = ""
    structs: dict[str, list[str]] = field(default_factory=dict)
    methods: list[Method] = field(default_factory=list)


class _Parser:
    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            line = text.count("\n", 0, at) + 1
            if found is None:
                raise IdlError(f"{path}:{line}: {text[at]!r} not understood")
            if found.lastgroup != "skip":
                self.tokens.append((found[0], line))
            at = found.end()
        self.at = 0
        self.idl = Idl()

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            wanted = f"; {expected!r} expected" if expected else ""
            raise self.error(f"{token or 'end of file'!r} not understood{wanted}")
        self.at += 1
        return token

    def error(self, text: str) -> IdlError:
        line = self.tokens[min(self.at, len(self.tokens) - 1)][1] if self.tokens else 1
        return IdlError(f"{self.path}:{line}: {text} (hexpatch/sim/idl.py knows little IDL)")

    def word(self) -> str:
        token = self.take()
        if not re.match(r"[A-Za-z_]", token):
            self.at -= 1
            raise self.error(f"{token!r} where a name should be")
        return token

    def ctype(self) -> tuple[str, bool]:
        """C type and whether it is a struct."""
        token = self.word()
        while token in ("unsigned", "long", "unsigned long") and self.peek() in ("long", "short"):
            token += " " + self.word()
        if token in self.idl.structs:
            return token, True
        if token not in TYPES:
            self.at -= 1
            raise self.error(f"type {token} not known")
        return TYPES[token], False

    def run(self) -> Idl:
        while self.peek():
            what = self.take()
            if what == "struct":
                self.struct()
            elif what == "interface":
                self.interface()
            else:
                self.at -= 1
                raise self.error(f"{what!r} not understood")
        if not self.idl.name:
            raise self.error("no interface")
        return self.idl

    def struct(self) -> None:
        name, members = self.word(), []
        self.take("{")
        while self.peek() != "}":
            ctype, _ = self.ctype()
            member, extent = self.word(), ""
            while self.peek() == "[":
                self.take()
                extent += f"[{self.take()}]"
                self.take("]")
            self.take(";")
            members.append(f"{ctype} {member}{extent};")
        self.take("}")
        self.take(";")
        self.idl.structs[name] = members

    def interface(self) -> None:
        if self.idl.name:
            raise self.error("a second interface")
        self.idl.name = self.word()
        if self.peek() != ":":
            raise self.error("only interfaces that inherit remote_handle64 are known")
        self.take(":")
        self.take("remote_handle64")
        self.take("{")
        while self.peek() != "}":
            result = self.word()
            if TYPES.get(result) not in ("AEEResult", "int32"):
                raise self.error(f"result {result} not known")
            name, params = self.word(), []
            self.take("(")
            while self.peek() != ")":
                params.append(self.param())
                if self.peek() != ")":
                    self.take(",")
            self.take(")")
            self.take(";")
            number = 2 + len(self.idl.methods)
            if number > 31:
                raise self.error("more than 30 methods")
            self.idl.methods.append(Method(number, name, tuple(params)))
        self.take("}")
        self.take(";")

    def param(self) -> Param:
        way = self.word()
        if way not in ("in", "rout", "inrout"):
            self.at -= 1
            raise self.error(f"{way!r} not known: in, rout or inrout")
        if self.peek() == "string":
            if way != "in":
                raise self.error("only `in string` is known")
            self.take()
            return Param(way, "char", self.word(), string=True)
        if self.peek() == "sequence":
            self.take()
            self.take("<")
            ctype, _ = self.ctype()
            self.take(">")
            return Param(way, ctype, self.word(), sequence=True)
        ctype, struct = self.ctype()
        return Param(way, ctype, self.word(), struct=struct)


def parse(text: str, path: str = "") -> Idl:
    """Read an IDL file's text."""
    return _Parser(text, path).run()


# -- C ----------------------------------------------------------------------------------------


def _declared(param: Param) -> str:
    const = "const " if param.way == "in" else ""
    if param.sequence or param.string:
        return f"{const}{param.ctype} * {param.name}" + (
            f", int {param.name}Len" if param.sequence else ""
        )
    if param.struct or param.way != "in":
        return f"{const}{param.ctype} * {param.name}"
    return f"{param.ctype} {param.name}"


def _prototype(idl: Idl, method: Method) -> str:
    params = "".join(f", {_declared(p)}" for p in method.params)
    return f"AEEResult {idl.name}_{method.name}(remote_handle64 _h{params})"


def _blocks(method: Method) -> tuple[list[str], list[str]]:
    """Members of the packed inputs and outputs."""
    ins, outs = [], []
    for p in method.params:
        if p.sequence or p.string:
            ins.append(f"uint32 {p.name}Len;")
            continue
        if p.way in ("in", "inrout"):
            ins.append(f"{p.ctype} {p.name};")
        if p.way in ("rout", "inrout"):
            outs.append(f"{p.ctype} {p.name};")
    return ins, outs


def _buffers(method: Method) -> tuple[list[Param | None], list[Param | None]]:
    """The call's buffers in order; None is the packed block."""
    ins, outs = _blocks(method)
    long = [p for p in method.params if p.sequence or p.string]
    return (
        [*([None] if ins else []), *(p for p in long if p.way in ("in", "inrout"))],
        [*([None] if outs else []), *(p for p in long if p.way in ("rout", "inrout"))],
    )


def header(idl: Idl) -> str:
    """NAME.h, for both sides."""
    name = idl.name
    out = [
        f"#ifndef {name.upper()}_H",
        f"#define {name.upper()}_H",
        "",
        "#include <AEEStdDef.h>",
        "#include <remote.h>",
        "",
        f'#define {name}_URI "file:///lib{name}_skel.so?{name}_skel_handle_invoke&_modver=1.0"',
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for struct, members in idl.structs.items():
        out += [f"typedef struct {struct} {struct};", f"struct {struct} {{"]
        out += [*(f"    {m}" for m in members), "};", ""]
    out.append(f"AEEResult {name}_open(const char * uri, remote_handle64 * _h);")
    out.append(f"AEEResult {name}_close(remote_handle64 _h);")
    out += [f"{_prototype(idl, m)};" for m in idl.methods]
    out += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(out)


def _structs(method: Method) -> list[str]:
    made = []
    for side, members in zip(("in", "out"), _blocks(method), strict=True):
        if members:
            made.append(f"    struct {{ {' '.join(members)} }} _{side} = {{ 0 }};")
    return made


def _includes(idl: Idl) -> list[str]:
    return ["#include <string.h>", "#include <AEEStdErr.h>", f'#include "{idl.name}.h"', ""]


def stub(idl: Idl) -> str:
    """NAME_stub.c, for the host."""
    out = [
        *_includes(idl),
        f"AEEResult {idl.name}_open(const char * uri, remote_handle64 * _h) {{",
        "    return remote_handle64_open(uri, _h);",
        "}",
        "",
        f"AEEResult {idl.name}_close(remote_handle64 _h) {{",
        "    return remote_handle64_close(_h);",
        "}",
    ]
    for m in idl.methods:
        ins, outs = _buffers(m)
        out += ["", f"{_prototype(idl, m)} {{", *_structs(m)]
        if ins or outs:
            out.append(f"    remote_arg _pra[{len(ins) + len(outs)}];")
        for p in m.params:
            if p.string:
                out.append(f"    _in.{p.name}Len = (uint32) strlen({p.name}) + 1;")
            elif p.sequence:
                out.append(f"    _in.{p.name}Len = (uint32) {p.name}Len;")
            elif p.way != "rout":
                star = "*" if p.struct or p.way == "inrout" else ""
                out.append(f"    _in.{p.name} = {star}{p.name};")
        for i, buffer in enumerate([*ins, *outs]):
            block = "_in" if i < len(ins) else "_out"
            where, size = f"&{block}", f"sizeof({block})"
            if buffer is not None:
                where = f"(void *) {buffer.name}"
                size = f"_in.{buffer.name}Len * sizeof({buffer.ctype})"
            out.append(f"    _pra[{i}].buf.pv = {where};")
            out.append(f"    _pra[{i}].buf.nLen = {size};")
        scalars = f"REMOTE_SCALARS_MAKE({m.number}, {len(ins)}, {len(outs)})"
        pra = "_pra" if ins or outs else "NULL"
        out.append(f"    AEEResult _rc = remote_handle64_invoke(_h, {scalars}, {pra});")
        out += [
            f"    if (_rc == AEE_SUCCESS) *{p.name} = _out.{p.name};"
            for p in m.params
            if p.way != "in" and not p.sequence
        ]
        out += ["    return _rc;", "}"]
    return "\n".join([*out, ""])


def skel(idl: Idl) -> str:
    """NAME_skel.c, for the DSP."""
    name = idl.name
    out = [*_includes(idl)]
    for m in idl.methods:
        ins, outs = _buffers(m)
        out.append(f"static int call_{m.name}(remote_handle64 _h, uint32_t _sc, remote_arg * _pra) {{")
        out += _structs(m)
        out.append(
            f"    if (REMOTE_SCALARS_INBUFS(_sc) != {len(ins)} || "
            f"REMOTE_SCALARS_OUTBUFS(_sc) != {len(outs)}) return AEE_EBADPARM;"
        )
        for i, side in ((0, "in"), (len(ins), "out")):
            if (ins if side == "in" else outs)[:1] == [None]:
                out.append(f"    if (_pra[{i}].buf.nLen < sizeof(_{side})) return AEE_EBADPARM;")
        if ins[:1] == [None]:
            out.append("    memcpy(&_in, _pra[0].buf.pv, sizeof(_in));")
        for i, buffer in enumerate([*ins, *outs]):
            if buffer is not None:
                size = f"_in.{buffer.name}Len * sizeof({buffer.ctype})"
                out.append(f"    if (_pra[{i}].buf.nLen < {size}) return AEE_EBADPARM;")
        args = ["_h"]
        for p in m.params:
            if p.sequence or p.string:
                i = ins.index(p) if p in ins else len(ins) + outs.index(p)
                if p.way == "inrout":  # two buffers: the caller's data goes into the second
                    second = len(ins) + outs.index(p)
                    size = f"_in.{p.name}Len * sizeof({p.ctype})"
                    out.append(f"    memcpy(_pra[{second}].buf.pv, _pra[{i}].buf.pv, {size});")
                    i = second
                args.append(f"({p.ctype} *) _pra[{i}].buf.pv")
                args += [f"(int) _in.{p.name}Len"] if p.sequence else []
            elif p.way == "in":
                args.append(f"{'&' if p.struct else ''}_in.{p.name}")
            else:
                args.append(f"&_out.{p.name}")
                if p.way == "inrout":
                    out.append(f"    _out.{p.name} = _in.{p.name};")
        out.append(f"    int _rc = {name}_{m.name}({', '.join(args)});")
        if outs[:1] == [None]:
            out.append(f"    memcpy(_pra[{len(ins)}].buf.pv, &_out, sizeof(_out));")
        out += ["    return _rc;", "}", ""]
    out += [
        f"int {name}_skel_handle_invoke(remote_handle64 _h, uint32_t _sc, remote_arg * _pra);",
        f"int {name}_skel_handle_invoke(remote_handle64 _h, uint32_t _sc, remote_arg * _pra) {{",
        "    const uint32_t _in = REMOTE_SCALARS_INBUFS(_sc);",
        "    switch (REMOTE_SCALARS_METHOD(_sc)) {",
        "        case 0:  // the URI is the last input, the handle the first output",
        "            return _in && REMOTE_SCALARS_LENGTH(_sc) > _in",
        f"                ? {name}_open((const char *) _pra[_in - 1].buf.pv,",
        "                    REMOTE_SCALARS_OUTBUFS(_sc) ? _pra[_in].buf.pv : &_pra[_in].h64)",
        "                : AEE_EBADPARM;",
        f"        case 1: return {name}_close(_h);",
        *(f"        case {m.number}: return call_{m.name}(_h, _sc, _pra);" for m in idl.methods),
        "        default: return AEE_EBADPARM;",
        "    }",
        "}",
        "",
    ]
    return "\n".join(out)


def main(argv: list[str]) -> int:
    """`FILE.idl OUTDIR`: write the three files, those that differ."""
    options = argparse.ArgumentParser(prog="qaic", description=__doc__)
    options.add_argument("idl", type=Path)
    options.add_argument("into", type=Path)
    chosen = options.parse_args(argv)
    try:
        made = parse(chosen.idl.read_text(encoding="utf-8"), str(chosen.idl))
    except IdlError as bad:
        print(bad, file=sys.stderr)
        return 1
    for suffix, text in ((".h", header(made)), ("_stub.c", stub(made)), ("_skel.c", skel(made))):
        (chosen.into / f"{chosen.idl.stem}{suffix}").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
