"""``format("ottla")``: Spark's door to any Kafka cluster, in Python and Arrow from end to end."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ottla.spark.errors import SparkRefused
from ottla.spark.options.read import a_flag, read_options
from ottla.spark.options.schema import check_projection, check_written, read_schema


class OttlaDataSource(DataSource):
    """Reads topics as Spark's Kafka columns, and writes rows to topics; batch and streaming."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        """All columns; ``headers`` on request."""
        wanted = self.options.get("includeHeaders", "false")
        return read_schema(a_flag("includeHeaders", wanted))

    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.read.batch import BatchReader

        check_projection(schema)
        return BatchReader(read_options(self.options, is_stream=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from ottla.spark.read.stream import StreamReader

        check_projection(schema)
        return StreamReader(read_options(self.options, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ottla.spark.options.write import write_options
        from ottla.spark.write.sinks import BatchWriter

        if overwrite:
            raise SparkRefused("mode 'overwrite': what a topic holds stays there", "say .mode('append')")
        options = write_options(self.options)
        check_written(schema, options.topic, preserves_timestamp=options.preserve_timestamp)
        return BatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from ottla.spark.options.write import write_options
        from ottla.spark.runtime.checkpoint import check_checkpoint
        from ottla.spark.write.sinks import StreamWriter

        if (location := self.options.get("checkpointLocation")) is not None:
            check_checkpoint("checkpointLocation", location)

        options = write_options(self.options, is_stream=True)
        check_written(schema, options.topic, preserves_timestamp=options.preserve_timestamp)
        return StreamWriter(options, schema)
