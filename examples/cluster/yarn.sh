#!/bin/sh
# A live job on YARN, in cluster mode. The driver is the application master: YARN starts it again
# when it fails or its machine is lost, and with --resume=auto it goes on where it was. The packed
# environment has Weir and its libraries, the packed program what the driver needs of it; both may
# lie in HDFS, so that they are not sent again each time.
exec spark-submit \
  --master yarn \
  --deploy-mode cluster \
  --name clicks \
  --archives environment.tar.gz#environment,clicks.zip#program \
  --num-executors 3 \
  --executor-cores 1 \
  --executor-memory 2g \
  --conf spark.yarn.appMasterEnv.PYSPARK_PYTHON=./environment/bin/python \
  --conf spark.yarn.maxAppAttempts=1000 \
  --conf spark.yarn.am.attemptFailuresValidityInterval=1h \
  submit.py run program/clicks.weir \
  --runner live --store s3://bucket/jobs/clicks --resume=auto --hosts 3
