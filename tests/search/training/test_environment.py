import re

from search.devices import CPU, Device
from search.training.environment import commit, environment


def test__environment__processor__names_versions_device_seed_and_threads():
    facts = environment(device=CPU, threads=3, seed=7, precision="32")
    assert facts["torch"].startswith("2.")
    assert facts["device"] == "cpu"
    assert (facts["threads"], facts["seed"], facts["precision"]) == ("3", "7", "32")
    assert all(isinstance(value, str) for value in facts.values())


def test__environment__gpu__named_with_its_model():
    gpu = Device(name="cuda:0", kind="cuda", model="made up")
    facts = environment(device=gpu, threads=1, seed=0, precision="bf16")
    assert facts["device_model"] == "made up"
    assert "cuda" in facts


def test__commit__checkout_or_package__hash_or_nothing():
    assert re.fullmatch(r"([0-9a-f]{40}(\+changes)?)?", commit())
