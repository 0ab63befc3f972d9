"""Messages of tests/data/torchair/*.proto without a compiler, for the subset of proto3 that those files use."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

DATA = Path(__file__).parent.parent / "data" / "torchair"
Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
    "int64": Field.TYPE_INT64,
    "float": Field.TYPE_FLOAT,
    "bool": Field.TYPE_BOOL,
}
TOKEN = re.compile(r"[\w.]+|[{}=;<>,]|\"[^\"]*\"")


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(re.sub(r"//[^\n]*", "", text))
        self.enums: set[str] = {self.tokens[i + 1] for i, token in enumerate(self.tokens) if token == "enum"}

    def take(self, expected: str | None = None) -> str:
        token: str = self.tokens.pop(0)
        assert expected is None or token == expected, (token, expected)
        return token

    def enum(self, enum: Any) -> None:
        enum.name = self.take()
        self.take("{")
        while self.tokens[0] != "}":
            value = enum.value.add(name=self.take())
            self.take("=")
            value.number = int(self.take())
            self.take(";")
        self.take("}")

    def field(self, message: Any, oneof: int | None) -> None:
        repeated = self.tokens[0] == "repeated"
        if repeated:
            self.take()
        kind = self.take()
        field = message.field.add(label=Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL)
        if kind == "map":
            self.take("<")
            key = self.take()
            self.take(",")
            value = self.take()
            self.take(">")
            kind, field.label = self.map_entry(message, key, value, self.tokens[0]), Field.LABEL_REPEATED
        field.name = self.take()
        self.take("=")
        field.number = int(self.take())
        self.take(";")
        self.type(field, kind)
        if oneof is not None:
            field.oneof_index = oneof

    def type(self, field: Any, kind: str) -> None:
        if kind in SCALARS:
            field.type = SCALARS[kind]
        else:
            field.type = Field.TYPE_ENUM if kind in self.enums else Field.TYPE_MESSAGE
            field.type_name = kind

    def map_entry(self, message: Any, key: str, value: str, name: str) -> str:
        entry_name = "".join(part.capitalize() for part in name.split("_")) + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for number, (field_name, kind) in enumerate((("key", key), ("value", value)), start=1):
            field = entry.field.add(name=field_name, number=number, label=Field.LABEL_OPTIONAL)
            self.type(field, kind)
        return entry_name

    def message(self, message: Any) -> None:
        message.name = self.take()
        self.take("{")
        while self.tokens[0] != "}":
            if self.tokens[0] == "enum":
                self.take()
                self.enum(message.enum_type.add())
            elif self.tokens[0] == "oneof":
                self.take()
                message.oneof_decl.add(name=self.take())
                self.take("{")
                while self.tokens[0] != "}":
                    self.field(message, len(message.oneof_decl) - 1)
                self.take("}")
            else:
                self.field(message, None)
        self.take("}")

    def file(self, name: str) -> Any:
        file = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto3")
        while self.tokens:
            keyword = self.take()
            if keyword == "syntax":
                self.take("="), self.take(), self.take(";")
            elif keyword == "package":
                file.package = self.take()
                self.take(";")
            elif keyword == "enum":
                self.enum(file.enum_type.add())
            else:
                assert keyword == "message", keyword
                self.message(file.message_type.add())
        return file


@cache
def message_class(file: str, name: str) -> Any:
    """Return the class of a message, such as "ge.GraphDef"."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_Reader((DATA / file).read_text()).file(file))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def parse_ge(text: str) -> Any:
    """Parse a graph of GE operators; ParseError if the text is invalid."""
    return text_format.Parse(text, message_class("ge_graph.proto", "ge.GraphDef")())


def parse_graph_def(text: str) -> Any:
    """Parse a TensorFlow GraphDef."""
    return text_format.Parse(text, message_class("graph_def.proto", "tf.GraphDef")())
