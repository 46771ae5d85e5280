import subprocess
import sys
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from search.tasks import AnyTask, Task, TaskConfig
from search.tasks.mlm import MlmConfig


def test__task__class_without_config__refused_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="config_type"):
        type("Nameless", (Task,), {})


def test__task__config_without_a_literal_kind__refused_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="Literal"):
        type("Unbound", (Task,), {"config_type": TaskConfig})


def test__any_task__json_round_trip__same_config_with_all_fields() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(AnyTask)
    config = MlmConfig.model_validate({"data": {"source": "x.txt"}, "seq_len": 32})
    assert adapter.validate_json(adapter.dump_json(config)) == config
    assert adapter.validate_python("mlm") == MlmConfig()


def test__any_task__misspelt_key__refused_with_its_path() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(AnyTask).validate_python({"kind": "mlm", "data": {"sauce": "x"}})
    assert caught.value.errors()[0]["loc"][-2:] == ("data", "sauce")


def test__tasks_and_metrics__import__no_heavy_library() -> None:
    code = (
        "import sys, search.tasks.mlm, search.tasks.metrics, search.tasks.evaluation\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'datasets', 'pyarrow', 'optuna'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
