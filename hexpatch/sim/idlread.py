"""Reads what upstream's IDL files are made of.

Structs of plain members and arrays, and one interface that inherits remote_handle64, whose methods
take `in`, `rout` and `inrout` parameters: plain types, structs, `string` (in only), `sequence<T>`.
Anything else is an error with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
