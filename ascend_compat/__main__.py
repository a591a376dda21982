from ascend_compat.cli.main import run

run()
