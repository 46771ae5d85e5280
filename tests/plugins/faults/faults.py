"""A mixer that breaks its training process in a chosen way, and a task of milliseconds."""

import ctypes
import itertools
import os
import random
import resource
import subprocess
import sys
import time
from typing import Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from mixers import MixerConfig, MixerTraits, TokenMixer
from mixers.model import Encoder
from search.tasks import Task, TaskConfig, TaskSizes

KEPT = []


class TrapConfig(MixerConfig):
    kind: Literal["faults.trap"] = "faults.trap"
    fault: str = "none"
    at: int = 3


class Trap(TokenMixer[TrapConfig]):
    """The mean over tokens, until the training forward number `at`."""

    config_type = TrapConfig

    def __init__(self, config, *, d_model, max_seq_len, causal=False):
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.out = nn.Linear(d_model, d_model)
        self.calls = 0

    @classmethod
    def traits(cls, config):
        return MixerTraits(
            reach="global", linear=True, position_aware=False, causal=False,
            fixed_length=False, cost="n", source="none",
        )  # fmt: skip

    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return 2 * seq_len * d_model * d_model

    def forward(self, x, mask=None):
        if self.training:
            self.calls += 1
            if self.calls == self.config.at:
                x = x * getattr(self, self.config.fault)()
        return self.out(x).mean(dim=1, keepdim=True).expand_as(x)

    def none(self):
        return 1.0

    def nan(self):
        return float("nan")

    def memory(self):
        return torch.ones(1 << 50).sum()

    def four_gigabytes(self):
        return torch.ones(1 << 30).sum()

    def memory_error(self):
        return float(len(bytearray(1 << 60)))

    def raises(self):
        raise RuntimeError("no such filter\nsecond line")

    def exits(self):
        sys.exit(3)

    def os_exit(self):
        os._exit(7)

    def killed(self):
        os.kill(os.getpid(), 9)

    def segfault(self):
        ctypes.string_at(0)

    def hangs(self):
        while True:
            time.sleep(0.01)

    def hangs_natively(self):
        # One call into C that never gives the interpreter back.
        sum(itertools.repeat(0))

    def hangs_with_a_child(self):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.hangs()

    def killed_in_save(self):
        # The next checkpoint is written, and the process is gone before it has its name.
        os.fsync = lambda descriptor: os.kill(os.getpid(), 9)
        return 1.0

    def kills_child(self):
        return self.strike(os.getpid())

    def kills_parent(self):
        return self.strike(os.getppid())

    def kills_both_in_save(self):
        if not self.was_struck():
            os.fsync = lambda descriptor: [os.kill(p, 9) for p in (os.getppid(), os.getpid())]
        return 1.0

    def strike(self, pid):
        if not self.was_struck():
            os.kill(pid, 9)
        return 1.0

    def was_struck(self):
        # Once for each fault over all processes.
        try:
            name = f"{os.environ['FAULT_FLAG']}-{self.config.fault}"
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return True
        return False

    def full_disk(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        return 1.0

    def draws(self):
        # As a mixer may that knows no better, from all the global generators.
        self.calls -= 1
        return 1.0 + 0.1 * (random.random() + np.random.random() + torch.rand(()).item())

    def talks(self):
        sys.stdout.write("a word on standard output\n")
        os.write(2, b"a word from native code\n")
        return 1.0

    def slow(self):
        self.calls -= 1
        time.sleep(0.05)
        return 1.0

    def grows(self):
        KEPT.append(bytearray(os.urandom(1 << 20) * 300))
        return 1.0


class CopyConfig(TaskConfig):
    kind: Literal["faults.copy"] = "faults.copy"

    @property
    def sizes(self):
        return TaskSizes(vocab_size=20, max_seq_len=16)


class CopyModel(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.encoder = Encoder(spec)
        self.head = nn.Linear(spec.d_model, spec.vocab_size)

    def forward(self, ids):
        return self.head(self.encoder(ids))


class Copy(Task[CopyConfig]):
    """Predict the first token everywhere."""

    config_type = CopyConfig
    fingerprint = "0" * 64

    def prepare(self):
        (self.cache_dir / "prepared").touch()

    def describe(self):
        return {}

    def build_model(self, spec):
        return CopyModel(spec)

    def draw(self, key, n):
        return torch.from_numpy(np.random.default_rng(key).integers(1, 20, size=(n, 16)))

    def train_batch(self, step, *, seed, batch_size):
        return {"ids": self.draw((seed, step), batch_size)}

    def evaluation_batches(self, split, batch_size):
        ids = self.draw((self.seed, 10**6, len(split)), 48)
        yield from ({"ids": part} for part in ids.split(batch_size))

    def loss(self, model, batch):
        ids = batch["ids"]
        targets = ids[:, :1].expand_as(ids)
        return functional.cross_entropy(model(ids).float().flatten(0, 1), targets.flatten())

    def records(self, model, batch):
        ids = batch["ids"]
        targets = ids[:, :1].expand_as(ids).flatten()
        logits = model(ids).float().flatten(0, 1)
        return {
            "nll": functional.cross_entropy(logits, targets, reduction="none"),
            "correct": logits.argmax(-1) == targets,
            "document": torch.zeros_like(targets),
        }

    def probe_contexts(self, n):
        return self.draw((self.seed, 5), n)

    def probe_vocabulary(self):
        return torch.arange(1, 20)
