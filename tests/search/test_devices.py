import pytest

from search.devices import (
    CPU,
    Device,
    choose_precision,
    device_variables,
    place,
    usable_cores,
)
from search.errors import InputError

MODERN = Device(name="cuda:0", kind="cuda", model="modern", bf16=True)
OLD = Device(name="cuda:1", kind="cuda", model="old", bf16=False)


@pytest.mark.parametrize(
    ("requested", "device", "expected"),
    [
        ("auto", CPU, "32"),
        ("auto", MODERN, "bf16"),
        ("auto", OLD, "32"),
        ("32", MODERN, "32"),
        ("bf16", MODERN, "bf16"),
        ("bf16", CPU, "bf16"),
    ],
)
def test__choose_precision__device_and_wish__expected_format(requested, device, expected):
    assert choose_precision(requested, device) == expected


def test__choose_precision__bf16_on_a_gpu_without_it__refused_with_the_way_out():
    with pytest.raises(InputError, match=r"cuda:1 \(old\) has no bfloat16; use auto or 32"):
        choose_precision("bf16", OLD)


@pytest.mark.parametrize(
    ("devices", "options", "expected"),
    [
        ((CPU,), {}, [("cpu", 8)]),
        ((CPU,), {"workers": 3}, [("cpu", 2)] * 3),
        ((CPU,), {"workers": 20}, [("cpu", 1)] * 20),
        ((MODERN, OLD), {}, [("cuda:0", 4), ("cuda:1", 4)]),
        ((MODERN, OLD), {"workers": 1}, [("cuda:0", 8)]),
        (
            (MODERN, OLD),
            {"slots_per_gpu": 2},
            [("cuda:0", 2), ("cuda:1", 2), ("cuda:0", 2), ("cuda:1", 2)],
        ),
        (
            (MODERN, OLD),
            {"slots_per_gpu": 2, "workers": 3},
            [("cuda:0", 2), ("cuda:1", 2), ("cuda:0", 2)],
        ),
    ],
)
def test__place__fake_devices_on_eight_cores__expected_slots(devices, options, expected):
    slots = place(devices, cores=8, **options)
    assert [(slot.device, slot.threads) for slot in slots] == expected


def test__place__more_workers_than_gpu_slots__refused_with_both_numbers():
    with pytest.raises(InputError, match="--workers 3 is more than 2 GPU"):
        place((MODERN, OLD), cores=8, workers=3)


@pytest.mark.parametrize("option", ["workers", "slots_per_gpu"])
def test__place__count_below_one__refused(option):
    with pytest.raises(InputError, match="must be at least 1"):
        place((CPU,), cores=8, **{option: 0})


@pytest.mark.parametrize(
    ("device", "outer", "visible"),
    [
        ("cpu", {}, ""),
        ("cpu", {"CUDA_VISIBLE_DEVICES": "3"}, ""),
        ("cuda:1", {}, "1"),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": "4, 7"}, "7"),
        ("cuda:0", {"CUDA_VISIBLE_DEVICES": "GPU-8f3a"}, "GPU-8f3a"),
    ],
)
def test__device_variables__slot__sees_its_device_only(device, outer, visible):
    variables = device_variables(device, 2, outer)
    assert variables["CUDA_VISIBLE_DEVICES"] == visible
    assert variables["OMP_NUM_THREADS"] == "2"


def test__device_variables__waiting_threads__sleep_unless_told_otherwise():
    assert device_variables("cpu", 2, {})["OMP_WAIT_POLICY"] == "PASSIVE"
    told = device_variables("cpu", 2, {"OMP_WAIT_POLICY": "ACTIVE"})
    assert told["OMP_WAIT_POLICY"] == "ACTIVE"


@pytest.mark.parametrize("outer", [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": ""}])
def test__device_variables__gpu_that_may_not_be_used__refused(outer):
    with pytest.raises(InputError, match="hidden by CUDA_VISIBLE_DEVICES"):
        device_variables("cuda:1", 2, outer)


@pytest.mark.parametrize("device", ["tpu", "cuda", "cuda:x", "cpu:0"])
def test__device_variables__unknown_name__refused(device):
    with pytest.raises(InputError, match="is unknown"):
        device_variables(device, 2, {})


def test__usable_cores__this_process__at_least_one():
    assert usable_cores() >= 1
