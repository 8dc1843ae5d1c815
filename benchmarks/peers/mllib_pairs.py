"""Spark MLlib: MinHashLSH with its own words and hashed 5-word shingles, self-join at distance .2; pairs."""

import sys

import documents
from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, RegexTokenizer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

# Each table is one band of one row: 3 find a pair at .8 with a chance of 99.2 %, and share a bucket
# with much more.
NUM_TABLES = 3
NUM_FEATURES = 1 << 22


def main():
    source, output, _ = documents.from_command_line()
    builder = SparkSession.builder
    for setting in sys.argv[3:]:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rows = spark.read.parquet(str(source)).select("id", "text")
    words = RegexTokenizer(inputCol="text", outputCol="words", pattern="[^a-z0-9]+").transform(rows)
    shingles = NGram(n=documents.SHINGLE_WORDS, inputCol="words", outputCol="shingles").transform(
        words
    )
    sets = HashingTF(
        numFeatures=NUM_FEATURES, binary=True, inputCol="shingles", outputCol="set"
    ).transform(shingles.where(F.size("shingles") > 0))
    sets = sets.select("id", "set").cache()
    model = MinHashLSH(inputCol="set", outputCol="hashes", numHashTables=NUM_TABLES, seed=1).fit(
        sets
    )
    near = model.approxSimilarityJoin(sets, sets, 0.2 + 1e-9).where("datasetA.id < datasetB.id")
    found = near.selectExpr("datasetA.id as doc_a", "datasetB.id as doc_b").collect()
    documents.write_lines(output, ((row.doc_a, row.doc_b) for row in found))
    spark.stop()


if __name__ == "__main__":
    main()
