"""Runs an emulator of AWS for as long as standard input is open.

Prints its address once it answers. Whoever starts this and dies, by whatever signal, closes the pipe, and the emulator
ends too: no test leaves a server behind.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(program, port, folder):
    here = os.path.dirname(sys.executable)
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "TMPDIR": folder, "LOG_LEVEL": "WARNING"}
    if program == "ministack":
        # BIND_HOST is not enough: the MQTT listener does not ask for it.
        environment |= {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0"}
        environment |= {"STATE_DIR": folder + "/state", "S3_DATA_DIR": folder + "/s3"}
        command = [os.path.join(here, "ministack")]
        ready = "/_ministack/health"
    else:
        command = [os.path.join(here, "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
        ready = "/moto-api/"
    # Its own output is for the log; standard output belongs to whoever started this.
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return process, f"http://127.0.0.1:{port}", ready


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return reply.status < 500
    except OSError:
        return False


def main():
    program = sys.argv[1]
    folder = tempfile.mkdtemp(prefix=program + "-")
    process = None
    try:
        # Another process may take a free port between the look and the use; then the emulator ends, and another is tried.
        for _ in range(5):
            process, url, ready = start(program, free_port(), folder)
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end and not answers(url + ready):
                time.sleep(0.05)
            if process.poll() is None and answers(url + ready):
                print(url, flush=True)
                sys.stdin.buffer.read()
                return 0
            process.kill()
            process.wait()
        return 1
    finally:
        if process and process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
