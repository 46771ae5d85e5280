"""Spec fields whose possible types are whatever a registry holds at the moment."""

import threading
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema, to_json

from mixers.errors import BrokenPluginError
from mixers.registry import Registry


class RegistryUnion:
    """`Annotated[Base, RegistryUnion(registry)]`: the tagged union of the registered configs.

    The registry is asked at every validation, so a plugin registered after the spec models were
    imported needs no rebuild. Input is a config object, a mapping with `kind`, or the bare name
    `"average"` for `{"kind": "average"}`; a config object is what is stored.
    """

    def __init__(self, registry: Registry[Any]) -> None:
        self.registry = registry
        self.lock = threading.Lock()
        self.cached: tuple[int, TypeAdapter[Any]] | None = None

    def config_types(self) -> dict[str, type[BaseModel]]:
        """Return {kind: config class} of the plugins that work."""
        return {kind: plugin.config_type for kind, plugin in self.registry.usable().items()}

    def adapter(self) -> TypeAdapter[Any]:
        """Return the union of what is registered now."""
        choices = self.config_types()
        with self.lock:
            generation = self.registry.generation
            if self.cached is None or self.cached[0] != generation:
                self.cached = (generation, TypeAdapter(Tagged(choices).annotated()))
            return self.cached[1]

    def validate(self, value: Any, info: core_schema.ValidationInfo) -> Any:
        """Validate one value; errors keep the native path and text."""
        if isinstance(value, str):
            value = {"kind": value}
        adapter = self.adapter()
        kind = value.get("kind") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind not in self.config_types():
            self.explain_broken(kind)
        if info.mode == "json" or isinstance(value, dict):
            # Mappings from files, the command line and HTTP bodies mean the same: a strict tuple
            # of a plugin's config accepts a list in each of them.
            return adapter.validate_json(to_json(value, inf_nan_mode="constants"))
        return adapter.validate_python(value)

    def explain_broken(self, kind: str) -> None:
        """Raise with the reason if the kind is an installed but broken plugin."""
        try:
            self.registry.get(kind)
        except BrokenPluginError as error:
            raise PydanticCustomError("broken_plugin", "{reason}", {"reason": str(error)}) from None
        except ValueError:
            return

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            self.validate, serialization=core_schema.simple_ser_schema("any")
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        union = handler(self.adapter().core_schema)
        if handler.mode == "serialization":
            return union
        return {"anyOf": [union, {"enum": sorted(self.config_types()), "type": "string"}]}


class Tagged:
    """The annotation behind `RegistryUnion.adapter`; a plain `Union` refuses a single member."""

    def __init__(self, choices: dict[str, type[BaseModel]]) -> None:
        self.choices = choices

    def annotated(self) -> Any:
        """Return the type to build a TypeAdapter of."""
        from typing import Annotated

        return Annotated[Any, self]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.tagged_union_schema(
            choices={kind: handler.generate_schema(cls) for kind, cls in self.choices.items()},
            discriminator="kind",
        )
