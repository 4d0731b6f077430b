#!/bin/sh
# A live job on a standalone cluster, in cluster mode with --supervise: the driver runs on a worker,
# and the master starts it again, there or elsewhere, when it fails or its machine is lost; with
# --resume=auto it goes on where it was. Spark takes only Java in this mode, so the main class is
# its own that runs Python applications; the jar must be one, and is not used. submit.py and the
# program lie where every machine sees them.
exec spark-submit \
  --master spark://head:7077 \
  --deploy-mode cluster \
  --supervise \
  --driver-memory 1g \
  --executor-memory 2g \
  --conf spark.cores.max=3 \
  --conf spark.pyspark.python=/opt/weir/bin/python \
  --class org.apache.spark.deploy.PythonRunner \
  "$SPARK_HOME"/jars/spark-launcher_*.jar /shared/submit.py "" \
  run /shared/clicks.weir \
  --runner live --store /shared/jobs/clicks --resume=auto --hosts 3
