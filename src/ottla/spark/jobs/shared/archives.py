"""An archive's directory, on this machine or wherever Spark's file systems reach, and the files in it."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ottla.spark.options.schema import read_schema


class Archive:
    """Parquet by topic and partition, and beside it what the jobs note down."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location

    def path_of(self, name: str) -> str:
        """Where a file in it lies; ``s3a://bucket/archive`` keeps its bucket."""
        return f"{self.location.rstrip('/')}/{name}"

    def rows(self) -> DataFrame:
        """All that is archived. The schema is given, so that a topic named ``2024`` stays a text."""
        return self._spark.read.schema(read_schema(True)).parquet(self.location)

    def exists(self) -> bool:
        """Whether there is such a directory."""
        path, files = self._found(self.location)
        return bool(files.exists(path))

    def has(self, name: str) -> bool:
        """Whether a file or directory of that name is in it."""
        path, files = self._found(self.path_of(name))
        return bool(files.exists(path))

    def note(self, name: str) -> str | None:
        """The text of a file in it; ``None`` if there is none."""
        if not self.has(name):
            return None
        path, files = self._found(self.path_of(name))
        session: Any = self._spark
        stream = files.open(path)
        try:
            return str(session._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_note(self, name: str, text: str) -> None:
        """Replace a file in it; if that is cut short there may be none, but never half of one."""
        path, files = self._found(self.path_of(name))
        new, _ = self._found(self.path_of(f"{name}.new"))
        stream = files.create(new, True)
        stream.write(bytearray(text.encode()))
        stream.close()
        files.delete(path, False)
        files.rename(new, path)

    def _found(self, location: str) -> tuple[Any, Any]:
        """A path as Spark's file systems have it, and the file system that it is in."""
        session: Any = self._spark
        path = session._jvm.org.apache.hadoop.fs.Path(location)
        return path, path.getFileSystem(session._jsc.hadoopConfiguration())
