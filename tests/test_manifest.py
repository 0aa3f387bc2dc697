import json
import re

import pytest

from clustergate.stacks.manifest import (
    Blas,
    Manifest,
    ManifestError,
    Program,
    manifest_path,
    read_manifest,
    write_manifest,
)

MANIFEST = Manifest(
    stack="mpich",
    provider="wheels",
    mpi_name="MPICH",
    blas=Blas("OpenBLAS", "0.3", "/lib/libopenblas.so", {"OMP_NUM_THREADS": "{threads}"}),
    programs={"xhpl": Program("/bin/xhpl", "2.3"), "IMB-MT": Program(unavailable="no source")},
)


def test_a_manifest_comes_back_as_it_was_written(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path, "mpich") == MANIFEST


def test_a_missing_manifest_says_what_to_run(tmp_path):
    with pytest.raises(ManifestError, match="clustergate setup"):
        read_manifest(tmp_path, "mpich")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 1, "blas": 3}'])
def test_a_damaged_manifest_is_named(tmp_path, text):
    path = manifest_path(tmp_path, "mpich")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ManifestError, match=r"mpich\.json"):
        read_manifest(tmp_path, "mpich")


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        ({"proof_library": {}}, "proof_library: expected str, got object"),
        ({"environment": {"FI_PROVIDER": 1}}, "environment.FI_PROVIDER: expected str, got int"),
        ({"programs": {"xhpl": {"path": 7}}}, "programs.xhpl.path: expected str, got int"),
        (
            {"blas": {"name": "a", "version": 3, "library": ""}},
            "blas.version: expected str, got int",
        ),
    ],
)
def test_a_manifest_with_anything_but_texts_is_refused(tmp_path, edited, said):
    path = write_manifest(tmp_path, MANIFEST)
    path.write_text(json.dumps({**json.loads(path.read_text()), **edited}))
    with pytest.raises(ManifestError, match=re.escape(said)):
        read_manifest(tmp_path, "mpich")


def test_a_manifest_of_another_schema_is_refused(tmp_path):
    path = write_manifest(tmp_path, MANIFEST)
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    with pytest.raises(ManifestError, match="another version"):
        read_manifest(tmp_path, "mpich")


def test_a_program_nobody_built_is_unavailable():
    assert "does not build hpcc" in MANIFEST.program("hpcc").unavailable
    assert MANIFEST.program("IMB-MT").unavailable == "no source"


def test_nothing_is_available_in_a_stack_that_is_not():
    absent = Manifest(stack="intel-mpi", provider="wheels", unavailable="no wheel for riscv64")
    assert absent.program("xhpl").unavailable == "no wheel for riscv64"
