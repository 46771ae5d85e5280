"""The files that `search mixers new` writes; `$name` is replaced."""

PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "0.1.0"
description = "A token mixer: $mixer."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["mixsearch"]

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points."mixers.v1"]
"$kind" = "$module:$Class"

[tool.setuptools]
py-modules = ["$module"]
"""

MODULE = '''\
"""The token mixer $kind."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from mixers import MixerConfig, MixerTraits, TokenMixer, zero_padding


class ${Class}Config(MixerConfig):
    """Settings of the mixer.

    Attributes:
        width: Neighbours on each side.
    """

    kind: Literal["$kind"] = "$kind"
    width: Annotated[int, Field(ge=1)] = 2


class $Class(TokenMixer[${Class}Config]):
    """W_O times the mean of a token's window: a start to be replaced by your own idea.

    Shapes: x (B, N, D); `out` W_O (D, D) with bias.
    """

    config_type: ClassVar[type[MixerConfig]] = ${Class}Config
    symbol: ClassVar[str] = "$symbol"

    def __init__(
        self, config: ${Class}Config, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.before = config.width
        self.after = 0 if causal else config.width
        self.out = nn.Linear(d_model, d_model)

    @classmethod
    def traits(cls, config: ${Class}Config) -> MixerTraits:
        """What the mixer claims; the conformance kit measures every line."""
        return MixerTraits(
            reach=config.width,
            linear=True,
            position_aware=True,
            causal=True,
            fixed_length=False,
            cost="n",
            source="where the idea comes from: paper and equation",
        )

    @classmethod
    def flops(cls, config: ${Class}Config, *, d_model: int, seq_len: int) -> int:
        """2 x multiply-adds of the projection; adding neighbours up is not counted."""
        return 2 * seq_len * d_model**2

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, N, D) -> (B, N, D), the update only."""
        # Cleared first: what stands under padding must never enter a sum.
        x = pad(zero_padding(x, mask), (0, 0, self.before, self.after))
        windows = x.unfold(1, self.before + 1 + self.after, 1)
        out: Tensor = self.out(windows.mean(-1))
        return out
'''

TEST = '''\
"""Every claim of the mixer, measured."""

from mixers.testing import Check, parametrize_with_checks


@parametrize_with_checks("$kind", [{}, {"width": 5}])
def test_${mixer}_keeps_its_claims(check: Check) -> None:
    """One claim of one config."""
    check()
'''

README = """\
# $distribution

The token mixer `$kind` for `mixsearch`.

```sh
pip install -e '.[test]'
pytest
search mixers show $kind --measure
search run --budget 9 --set 'space.choices=[attention, sepconv, $kind]'
```

`$module.py` has the class: change the config, `traits`, `flops` and `forward`, and let the tests
tell what no longer holds. The entry point in `pyproject.toml` and `kind` must stay the same text.
"""

FILES = {
    "pyproject.toml": PROJECT,
    "$module.py": MODULE,
    "tests/test_$mixer.py": TEST,
    "README.md": README,
}
