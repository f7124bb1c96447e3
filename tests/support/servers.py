# SPDX-License-Identifier: Apache-2.0
"""Servers that others wrote, in a folder of a test's: started, alone or behind a command, asked, and stopped."""
import glob
import http.client
import os
import re
import shutil
import socket
import subprocess
import time

PATIENCE_S = 120
NOBODY = 65534 # who a server is that refuses to run as root

NGINX = """daemon off; error_log {0}/error.log; pid {0}/pid; worker_processes {1};
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d;
scgi_temp_path {0}/e;
server {{ listen unix:{0}/socket; root {0}/files; keepalive_requests 100000;
  location /status {{ stub_status; }} location /gone {{ return 410; }} }} }}
"""


class Server:
    def __init__(self, command, folder, user=None):
        self.folder, self.user = folder, user
        self.output = open(os.path.join(folder, "output"), "w+", encoding="utf-8", errors="replace")
        self.said = open(os.path.join(folder, "said"), "w+", encoding="utf-8", errors="replace")
        self.program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.said,
                                        start_new_session=True, cwd=folder, env={**os.environ, "HOME": folder, "TMPDIR": folder},
                                        **as_user(user))

    def is_up(self):
        raise NotImplementedError

    def until_up(self):
        until = time.monotonic() + PATIENCE_S
        while not self.is_up():
            assert self.program.poll() is None and time.monotonic() < until, f"it does not come up: {self.text()}"
            time.sleep(0.05)

    def text(self):
        self.said.seek(0)
        return self.said.read()

    def end(self):
        """What was on its standard output. It was told to end."""
        status = self.program.wait(PATIENCE_S)
        assert status == 0, f"exit status {status}: {self.text()}"
        self.output.seek(0)
        return self.output.read()

    def kill(self):
        if self.program.poll() is None:
            os.killpg(self.program.pid, 9)
            self.program.wait()
        self.output.close()
        self.said.close()


def as_user(user):
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


def postgres_programs():
    """The folder of a version that is known; None: there is none."""
    folders = sorted(glob.glob("/usr/lib/postgresql/1[2-7]/bin"))
    return folders[-1] if folders and shutil.which("psql") else None


class Postgres(Server):
    """With pg_stat_statements, in a folder of its own; `before` is what its command stands behind."""

    def __init__(self, folder, before, *more):
        programs, user = postgres_programs(), NOBODY if os.geteuid() == 0 else None
        os.chmod(folder, 0o755)
        if user:
            os.chown(folder, user, user)
        self.data = os.path.join(folder, "data")
        subprocess.run([f"{programs}/initdb", "-A", "trust", "-U", "postgres", "-N", "-D", self.data], check=True, cwd=folder,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE_S, **as_user(user))
        super().__init__([*before, f"{programs}/postgres", "-D", self.data, "-k", folder, "-h", "", "-c", "autovacuum=off", "-c",
                          "shared_preload_libraries=pg_stat_statements", *more], folder, user)

    def ask(self, *words):
        return subprocess.run(["psql", "-h", self.folder, "-U", "postgres", "-XAtq", *words], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)

    def is_up(self):
        return self.ask("-c", "select 1").returncode == 0

    def stop(self):
        with open(f"{self.data}/postmaster.pid", encoding="ascii") as file:
            os.kill(int(file.readline()), 2)


def nginx_program():
    """None: there is none of the version that is known."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") # where Debian has it, which is no user's
    version = nginx and subprocess.run([nginx, "-V"], capture_output=True, text=True, check=False).stderr
    return nginx if version and "nginx/1.22." in version and "http_stub_status_module" in version else None


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self.path)


def answer(connection, path):
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read().decode()


class Nginx(Server):
    def __init__(self, folder, before, workers=2):
        os.chmod(folder, 0o755)
        os.mkdir(f"{folder}/files")
        with open(f"{folder}/files/there", "w", encoding="ascii") as file:
            file.write("x" * 1000)
        with open(f"{folder}/conf", "w", encoding="utf-8") as file:
            file.write(NGINX.format(folder, workers))
        super().__init__([*before, nginx_program(), "-e", f"{folder}/error.log", "-c", f"{folder}/conf"], folder)

    def is_up(self):
        return os.path.exists(f"{self.folder}/socket") and os.path.exists(f"{self.folder}/pid")

    def connect(self):
        return UnixConnection(f"{self.folder}/socket")

    def requests(self, text):
        """As stub_status says it."""
        return int(re.search(r"requests\n \d+ \d+ (\d+)", text).group(1))

    def stop(self):
        with open(f"{self.folder}/pid", encoding="ascii") as file:
            os.kill(int(file.readline()), 3) # SIGQUIT: what is under way is answered


class Redis(Server):
    def __init__(self, folder, before):
        super().__init__([*before, "redis-server", "--port", "0", "--unixsocket", f"{folder}/socket", "--save", "", "--dir",
                          folder, "--logfile", f"{folder}/log"], folder)

    def is_up(self):
        return os.path.exists(f"{self.folder}/socket")

    def stop(self):
        self.program.terminate()
