"""The messages of the open inference protocol over gRPC, made from a table of their fields. Needs protobuf.

Names and numbers are those of the protocol, which all clients share.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

SERVICE: Final = "inference.GRPCInferenceService"

# Fields in the order of their numbers, from 1. A star repeats; a map is one of parameters by their names.
_MESSAGES: Final = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready",
    "ModelReadyRequest": "string name, string version",
    "ModelReadyResponse": "bool ready",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "string name, string version, string* extensions",
    "ModelMetadataRequest": "string name, string version",
    "ModelMetadataResponse": "string name, string* versions, string platform, "
    "ModelMetadataResponse.TensorMetadata* inputs, ModelMetadataResponse.TensorMetadata* outputs",
    "ModelMetadataResponse.TensorMetadata": "string name, string datatype, int64* shape",
    "ModelInferRequest": "string model_name, string model_version, string id, map parameters, "
    "ModelInferRequest.InferInputTensor* inputs, ModelInferRequest.InferRequestedOutputTensor* outputs, "
    "bytes* raw_input_contents",
    "ModelInferRequest.InferInputTensor": "string name, string datatype, int64* shape, map parameters, "
    "InferTensorContents contents",
    "ModelInferRequest.InferRequestedOutputTensor": "string name, map parameters",
    "ModelInferResponse": "string model_name, string model_version, string id, map parameters, "
    "ModelInferResponse.InferOutputTensor* outputs, bytes* raw_output_contents",
    "ModelInferResponse.InferOutputTensor": "string name, string datatype, int64* shape, map parameters, "
    "InferTensorContents contents",
    "InferParameter": "one bool bool_param, one int64 int64_param, one string string_param",
    "InferTensorContents": "bool* bool_contents, int32* int_contents, int64* int64_contents, uint32* uint_contents, "
    "uint64* uint64_contents, float* fp32_contents, double* fp64_contents, bytes* bytes_contents",
}


def message(name: str) -> type[Any]:
    """Returns the class of a message."""
    found: type[Any] = GetMessageClass(_POOL.FindMessageTypeByName(f"inference.{name}"))
    return found


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="isvc/open_inference.proto", package="inference", syntax="proto3")
    by_name: dict[str, DescriptorProto] = {}
    for name, fields in _MESSAGES.items():
        outer, _, inner = name.rpartition(".")
        descriptor = (by_name[outer].nested_type if outer else file.message_type).add(name=inner)
        by_name[name] = descriptor
        for number, field in enumerate(filter(None, fields.split(", ")), 1):
            _add_field(descriptor, f".inference.{name}", number, field)
    return file


def _add_field(descriptor: DescriptorProto, path: str, number: int, text: str) -> None:
    *choice, kind, name = text.split()
    repeated = kind.endswith("*") or kind == "map"
    label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    field = descriptor.field.add(name=name, number=number, label=label)
    if choice:
        if not descriptor.oneof_decl:
            descriptor.oneof_decl.add(name="parameter_choice")
        field.oneof_index = 0
    if kind == "map":
        entry = descriptor.nested_type.add(name="ParametersEntry")
        entry.options.map_entry = True
        _add_field(entry, "", 1, "string key")
        _add_field(entry, "", 2, "InferParameter value")
        _set_type(field, f"{path}.ParametersEntry")
    elif kind.rstrip("*")[0].isupper():
        _set_type(field, f".inference.{kind.rstrip('*')}")
    else:
        field.type = getattr(FieldDescriptorProto, f"TYPE_{kind.rstrip('*').upper()}")


def _set_type(field: FieldDescriptorProto, name: str) -> None:
    field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, name


_POOL: Final = DescriptorPool()  # of our own: another package may bring the same messages
_POOL.Add(_file())
