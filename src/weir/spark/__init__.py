from weir.runtime.extras import need_extra

need_extra("spark", "pyspark", "the offline and the live runner, and DataFrames, need")
