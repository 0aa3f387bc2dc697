"""What is made of sinfo's answers; the texts are those of Slurm 22.05 on the virtual cluster."""

import pytest

from clustergate import slurm_nodes

TEXT = """\
n[2-4]|drained|broken fan
n1|idle|none
n5|down*|Not responding
n6|mixed~|none
n7|idle*|none
n5|down*|Not responding
"""


def test_each_reason_is_a_sentence_and_nodes_in_use_are_none():
    assert list(slurm_nodes.unused_nodes(TEXT)) == [
        "Slurm does not use n[2-4]: drained, broken fan",
        "Slurm does not use n5: down, does not respond, Not responding",
        "Slurm does not use n7: idle, does not respond",
    ]
    assert list(slurm_nodes.unused_nodes("")) == []


@pytest.mark.parametrize(
    ("script", "sentences"),
    [
        ("echo 'n1|idle|none'", []),
        ('for i in 1 2 3 4 5 6 7; do echo "n$i|down|r$i"; done', ["and 2 more reasons"]),
        ("echo 'cannot contact the controller' >&2; exit 1", ["cannot contact the controller"]),
    ],
)
def test_slurm_is_asked(tmp_path, monkeypatch, script, sentences):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text(f"#!/bin/sh\n{script}\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    told = slurm_nodes.notes_of_slurm()
    assert bool(told) == bool(sentences)
    for sentence in sentences:
        assert sentence in told[-1]


def test_without_slurm_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (told,) = slurm_nodes.notes_of_slurm()
    assert told.startswith("Slurm could not be asked for its nodes")
