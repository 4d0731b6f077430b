"""The `weir` command as an application of Spark: spark-submit … submit.py run PROGRAM …"""

from weir.cli import main

main()
