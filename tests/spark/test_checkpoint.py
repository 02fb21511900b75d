"""A checkpoint that cannot be written is refused before a query begins; every job has its page."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from ottla.spark.errors import OptionRefused
from ottla.spark.jobs import JOBS
from ottla.spark.runtime.checkpoint import check_checkpoint, check_file, claim_checkpoint, has_begun


def test_a_checkpoint_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")

    with pytest.raises(OptionRefused, match=r"option checkpointLocation='.*': it cannot be made: Not a dir"):
        check_checkpoint("checkpointLocation", str(file / "below"))


def test_a_directory_is_made_and_one_elsewhere_is_left_to_spark(tmp_path: Path) -> None:
    check_checkpoint("checkpointLocation", (tmp_path / "new").as_uri())
    check_checkpoint("checkpointLocation", "s3a://bucket/elsewhere")

    assert (tmp_path / "new").is_dir()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "it is a directory"),
        ("missing/plan.json", "there is no directory "),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_it_is_wanted(
    name: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(OptionRefused, match=rf"option to='.*': {said}.*; name a file that you may write to"):
        check_file("to", str(tmp_path / name))


def test_a_file_that_can_be_written_is_not_written_yet(tmp_path: Path) -> None:
    check_file("to", str(tmp_path / "plan.json"))

    assert not (tmp_path / "plan.json").exists()


def test_a_checkpoint_has_begun_when_it_names_its_query(tmp_path: Path) -> None:
    before = has_begun(str(tmp_path))
    (tmp_path / "metadata").write_text("{}")

    assert not before
    assert has_begun(tmp_path.as_uri())
    assert not has_begun("s3a://bucket/elsewhere"), "nobody can tell from here"


def test_a_checkpoint_serves_one_job(tmp_path: Path) -> None:
    for _ in range(2):
        claim_checkpoint("checkpoint", str(tmp_path), "validate")

    with pytest.raises(
        OptionRefused, match="it belongs to the job validate; choose a directory for this job"
    ):
        claim_checkpoint("checkpoint", tmp_path.as_uri(), "aggregate")
    claim_checkpoint("checkpoint", "s3a://bucket/elsewhere", "aggregate")


def test_the_checkpoint_of_an_archive_serves_no_other_job(tmp_path: Path) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_checkpoint").mkdir()

    with pytest.raises(OptionRefused, match="it belongs to the job archive"):
        claim_checkpoint("checkpoint", str(tmp_path / "_checkpoint"), "validate")


def test_every_job_has_its_page(repository: Path) -> None:
    pages = {page.stem: page.read_text() for page in (repository / "docs/spark/jobs").glob("*.md")}

    assert set(pages) == set(JOBS)
    assert all(f"ottla pipeline run {name} " in text for name, text in pages.items())
