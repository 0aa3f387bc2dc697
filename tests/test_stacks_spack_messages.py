import pytest

from clustergate.stacks.spack.messages import explain, progress_of


@pytest.fixture
def printed(data):
    return lambda name: (data / "spack" / f"{name}.txt").read_text()


def test_a_source_that_cannot_be_fetched_is_named_with_the_way_out(printed):
    sentence = explain(printed("fetch"))
    assert sentence.startswith("the source of gmake 4.4.1 cannot be fetched (https://ftpmirror.gnu")
    assert "Name or service not known" in sentence
    assert "CLUSTERGATE_SOURCES" in sentence


def test_unfetched_patch_told_with_its_package(printed):
    """A patch that cannot be fetched is told with the package that it is for."""
    sentence = explain(printed("patch"))
    assert sentence.startswith("a patch for openmpi 5.0.7 cannot be fetched (https://")
    assert "aa024ac73d624611cfe3af6f541b5d28dedf07bb.patch?full_index=1" in sentence


def test_a_differing_checksum_names_both_and_where_it_came_from(printed):
    sentence = explain(printed("checksum"))
    assert sentence.startswith("the source of compiler-wrapper 1.1.0 from file:///home/user/bad")
    assert "has the checksum 3a52df9076b0… where a07b35081d14… is pinned" in sentence


def test_a_store_on_a_read_only_file_system_is_named(printed):
    sentence = explain(printed("readonly"))
    assert sentence.startswith("/home/user/site/ro/store cannot be written; name another folder")


def test_a_full_disk_is_named_by_what_was_to_be_written(printed):
    sentence = explain(printed("full"))
    assert sentence.startswith("the disk is full (/home/user/site/full/store/bin/")
    assert "free some space" in sentence


def test_what_does_not_concretize_is_told_with_spacks_first_reason(printed):
    assert explain(printed("unsatisfiable")).startswith(
        "it does not concretize (Cannot satisfy 'hpl@9.9' 1(2.3)); correct the version"
    )
    assert explain(printed("variant")).startswith(
        "it does not concretize (No such variant {'gpu'} for spec: 'hpl@2.3+gpu'); correct"
    )
    assert explain(printed("version")).startswith(
        "it does not concretize (Version requirement 9.9 on hpl for hpl cannot match any known"
    )


def test_a_recipe_that_gives_up_is_told_in_its_own_words(printed):
    assert explain(printed("recipe")).startswith(
        "compiling hpcc 1.5.0 failed (NoLibrariesError: Unable to recursively locate mpich "
        "libraries in /home/user/site/mpich; the whole log is "
    )


def test_a_package_without_a_recipe_is_named(printed):
    assert explain(printed("unknown")).startswith(
        "no package repository has a recipe 'linpacky'; correct the name"
    )


@pytest.mark.parametrize(
    "name",
    [
        "fetch",
        "patch",
        "recipe",
        "checksum",
        "readonly",
        "full",
        "unsatisfiable",
        "variant",
        "unknown",
        "locked",
        "version",
    ],
)
def test_every_failure_is_one_sentence_in_one_line(printed, name):
    sentence = explain(printed(name))
    assert "\n" not in sentence
    assert len(sentence) < 600


def test_a_lock_that_another_spack_holds_is_named(printed):
    assert explain(printed("locked")).startswith(
        "another Spack has held the lock /home/user/site/spack/user-cache/cache/providers/"
        ".builtin-specfile_v5-index.json.lock for 120 s; wait for it"
    )


def test_what_nobody_knows_is_told_in_spacks_own_words():
    text = "==> Warning: strange\n==> Error: the moon is full.\n==> Error: later\n"
    assert explain(text) == "the moon is full; fix that and run the command again"
    assert explain("").startswith("it printed nothing")


def test_progress_counts_packages(printed):
    steps = [step for line in printed("fetch").splitlines() if (step := progress_of(line))]
    assert steps == [
        "building compiler-wrapper 1.1.0 (1 of 35)",
        "building gcc-runtime 12.2.0 (6 of 35)",
        "building gmake 4.4.1 (7 of 35)",
    ]


def test_a_recipes_own_revision_belongs_to_the_version():
    line = "==> Installing mvapich2-2.3.7-1-abcdefghijklmnopqrstuvwxyz234567 [3/9]"
    assert progress_of(line) == "building mvapich2 2.3.7-1 (3 of 9)"


def test_language_without_compiler_told_with_remedy():
    text = (
        "==> Error: failed to concretize `mvapich2@2.3.7-1` for the following reasons:\n"
        "     1. Only external, or concrete, compilers are allowed for the fortran language\n"
    )
    sentence = explain(text)
    assert sentence.startswith("Spack finds no gfortran here (`")
    assert "install" in sentence.partition("`")[2]
