"""Spec fields whose possible types are whatever a registry holds at the moment."""

import threading
from typing import Annotated, Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema, to_json

from mixers.config import MixerConfig
from mixers.errors import BrokenPluginError
from mixers.registry import Registry, mixer_registry


class RegistryUnion:
    """`Annotated[Base, RegistryUnion(registry)]`: the tagged union of the registered configs.

    The registry is asked at every validation, so a plugin registered after the spec models were
    imported needs no rebuild. Input is a config object, a mapping with `kind`, or the bare name
    `"average"` for `{"kind": "average"}`; a config object is what is stored.
    """

    def __init__(self, registry: Registry[Any]) -> None:
        self.registry = registry
        self.lock = threading.Lock()
        self.cached: tuple[int, frozenset[str], TypeAdapter[Any]] | None = None

    def config_types(self) -> dict[str, type[BaseModel]]:
        """Return {kind: config class} of the plugins that work."""
        return {kind: plugin.config_type for kind, plugin in self.registry.usable().items()}

    def current(self) -> tuple[frozenset[str], TypeAdapter[Any]]:
        """Return the kinds that are registered now and the union of their configs."""
        self.registry.discovered()
        with self.lock:
            # Read first: should a plugin be registered meanwhile, the next call builds again.
            generation = self.registry.generation
            if self.cached is None or self.cached[0] != generation:
                choices = self.config_types()
                adapter = TypeAdapter[Any](Annotated[Any, Tagged(choices)])
                self.cached = (generation, frozenset(choices), adapter)
            return self.cached[1:]

    def validate(self, value: Any, info: core_schema.ValidationInfo) -> Any:
        """Validate one value; errors keep the native path and text."""
        if isinstance(value, str):
            value = {"kind": value}
        kinds, adapter = self.current()
        kind = value.get("kind") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind not in kinds:
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
        kinds, adapter = self.current()
        union = handler(adapter.core_schema)
        if handler.mode == "serialization":
            return union
        return {"anyOf": [union, {"enum": sorted(kinds), "type": "string"}]}


class Tagged:
    """The annotation behind `RegistryUnion.current`; a plain `Union` refuses a single member."""

    def __init__(self, choices: dict[str, type[BaseModel]]) -> None:
        self.choices = choices

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.tagged_union_schema(
            choices={kind: handler.generate_schema(cls) for kind, cls in self.choices.items()},
            discriminator="kind",
        )


AnyMixer = Annotated[MixerConfig, RegistryUnion(mixer_registry)]
"""The config of any registered mixer."""
