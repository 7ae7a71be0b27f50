"""What all commands share: they start fast, fail in one sentence, and are found by shells and kubectl."""

from __future__ import annotations

import inspect
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points

import click
import pytest
from click.testing import CliRunner

from isvc.cli import COMMANDS, main
from isvc.cli.cluster import Cluster
from isvc.cli.output import print_objects, print_table
from isvc.cli.seconds import Seconds
from isvc.insight.operations.kinds import resource_called

HOSTILE = "\x1b]52;c;cm0=\x07\x1b[2Jtit\u202ele\x9b31m.exe"
SLOW = {"aiohttp", "cryptography", "msgspec", "orjson", "rich", "yaml"}


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_loads_nothing_that_is_slow(words: list[str]):
    listed = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from isvc.cli import main; main()", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in listed.stderr.splitlines()}
    assert "click" in loaded
    assert loaded & SLOW == set()


def test_every_command_says_what_it_does():
    for name, (_, summary) in COMMANDS.items():
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert command.help, name
        assert summary.endswith("."), name


@pytest.mark.parametrize("words", [*([name] for name in COMMANDS), ["runtime", "add"]], ids=" ".join)
def test_what_the_help_shows_to_be_typed_stays_on_one_line(words: list[str]):
    command: click.Command | None = main
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    shown = CliRunner().invoke(main, [*words, "--help"]).output
    for line in inspect.cleandoc(command.help or "").splitlines():
        if line.startswith("  "):
            assert line in shown


@pytest.mark.parametrize(
    ("kubeconfig", "sentence"),
    [
        (None, "no cluster is configured"),
        ("", "no cluster is configured"),
        ("missing", "kubeconfig not found"),
        ("not yaml: [", "is not valid YAML"),
        ("current-context: nowhere", "no context 'nowhere'"),
        ("http://127.0.0.1:9", "cannot reach http://127.0.0.1:9: connection refused"),
        ("http://[::1]:9", "cannot reach http://[::1]:9: "),
        ("https://[::1", "server 'https://[::1' is not an http(s) address"),
        ("https://a:b", "server 'https://a:b' is not an http(s) address"),
        ("https://a:99999", "server 'https://a:99999' is not an http(s) address"),
        ("https://a/b c", "server 'https://a/b c' is not an http(s) address"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_one_sentence(kubeconfig, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ISVC_HOME", str(tmp_path / "nothing"))
    if kubeconfig is not None and kubeconfig.startswith("http"):
        kubeconfig = (
            "{current-context: c, contexts: [{name: c, context: {cluster: c}}],"
            f" clusters: [{{name: c, cluster: {{server: '{kubeconfig}'}}}}]}}"
        )
    if kubeconfig is not None:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config") if kubeconfig else "")
        if kubeconfig not in ("", "missing"):
            (tmp_path / "config").write_text(kubeconfig)
    result = CliRunner().invoke(main, ["get"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert sentence in result.output
    assert result.output.count("\n") == 1


def test_a_cluster_without_kserves_kinds_is_told_from_one_without_services(tmp_path):
    from tests.servers import discard, start

    bare = start("embedded", tmp_path)
    try:
        for words in (["get"], ["explain"], ["wait", "iris"]):
            result = CliRunner().invoke(main, [*words, "--kubeconfig", str(bare.kubeconfig)])
            assert result.exit_code == 1
            assert "does not have KServe's kinds; `isvc manifests` prints what it needs" in result.output
    finally:
        discard(bare)


def test_an_isvc_up_that_runs_here_is_meant_when_nothing_is_configured(tmp_path, monkeypatch):
    from isvc.local.home import Home, Running
    from isvc.toolkit.failure import ConfigError

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ISVC_HOME", str(tmp_path / "home"))
    home = Home.default()
    home.prepare()
    written = tmp_path / "kubeconfig"
    written.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, namespace: team}}],"
        " clusters: [{name: c, cluster: {server: 'https://here'}}]}"
    )
    with home.lock():
        home.report(Running(os.getpid(), "", "", str(written), ""))
        assert Cluster().config().server == "https://here"
        assert Cluster().config().namespace == "team"
        with pytest.raises(ConfigError):
            Cluster(context="elsewhere").config()


def _hear_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_is_quiet(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = tmp_path / "config"
        config.write_text(
            "{current-context: c, contexts: [{name: c, context: {cluster: c}}],"
            f" clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{silent.getsockname()[1]}'}}}}]}}"
        )
        program = [sys.executable, "-c", "from isvc.cli import main; main()", "get", "--kubeconfig", str(config)]
        # In the background of a shell, where this suite may run, Ctrl-C is ignored.
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_hear_ctrl_c)
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_output_that_nobody_reads_any_more_ends_quietly():
    read, write = os.pipe()
    os.close(read)
    program = [sys.executable, "-c", "from isvc.cli import main; main()", "completion", "bash"]
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(program, stdout=closed, stderr=subprocess.PIPE, timeout=60)
    assert done.stderr == b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_what_the_shell_reads(shell, tmp_path):
    script = CliRunner().invoke(main, ["completion", shell]).output
    assert "_ISVC_COMPLETE" in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_commands_are_completed():
    environment = {**os.environ, "_ISVC_COMPLETE": "bash_complete", "COMP_WORDS": "isvc g", "COMP_CWORD": "1"}
    program = [sys.executable, "-c", "from isvc.cli import main; main(prog_name='isvc')"]
    listed = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout
    assert "plain,get" in listed.splitlines()


def test_a_cluster_that_cannot_be_used_completes_nothing(tmp_path):
    words = f"isvc explain --kubeconfig {tmp_path / 'none'} i"
    environment = {**os.environ, "_ISVC_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "4"}
    program = [sys.executable, "-c", "from isvc.cli import main; main(prog_name='isvc')"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_kubectl_finds_it_as_a_plugin():
    scripts = {script.name: script.value for script in entry_points(group="console_scripts")}
    assert scripts["kubectl-isvc"] == scripts["isvc"]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("isvc", "InferenceService"),
        ("InferenceServices", "InferenceService"),
        ("llmisvc", "LLMInferenceService"),
        ("inferencegraphs.serving.kserve.io", "InferenceGraph"),
        ("tm", "TrainedModel"),
        ("iris", None),
    ],
)
def test_kinds_have_the_names_that_kubectl_knows(word, kind):
    resource = resource_called(word)
    assert (resource and resource.kind) == kind


@click.command()
def table() -> None:
    print_table(["NAME", "READY"], [["a-long-name", "True"], ["b", HOSTILE]], NAME={"b": "red"}.get)


def test_tables_line_up_in_colours_of_ours_alone():
    shown = CliRunner().invoke(table, color=True).output
    assert shown == "NAME          READY\na-long-name\x1b[0m   True\n\x1b[31mb\x1b[0m             title.exe\n"


@pytest.mark.parametrize(
    "words", [("predict", "iris", "-d", HOSTILE), ("render", "-f", HOSTILE), ("diff", "-f", HOSTILE)]
)
def test_a_terminal_is_not_commanded_by_what_fails(words: tuple[str, ...]):
    failed = CliRunner().invoke(main, words, color=True)
    assert "title.exe" in failed.stderr
    assert failed.exit_code


def test_a_terminal_is_not_commanded_by_what_a_model_answers():
    answers = [f"{HOSTILE} is no JSON".encode(), f'{{"text": "{HOSTILE[-10:]}"}}'.encode()]
    terminal, inside = pty.openpty()
    program = f"from isvc.cli.predict import _show; [_show(answer) for answer in {answers!r}]"
    subprocess.run([sys.executable, "-c", program], stdout=inside, check=True)
    assert os.read(terminal, 1000).decode() == 'title.exe is no JSON\r\n{\r\n  "text": "le.exe"\r\n}\r\n'


def test_objects_are_printed_as_kubectl_prints_them(capsys):
    one = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "a"}}
    print_objects([one, one], "name")
    assert capsys.readouterr().out == "inferenceservice.serving.kserve.io/a\n" * 2
    print_objects([one], "yaml")
    assert capsys.readouterr().out.startswith("apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\n")
    print_objects([one, one], "json")
    assert '"kind": "List"' in capsys.readouterr().out


def test_progress_says_nothing_where_nobody_looks(capsys):
    from isvc.cli.progress import Progress

    with Progress("working") as progress:
        progress.update("still working")
    assert capsys.readouterr() == ("", "")


def test_progress_shows_what_takes_long(monkeypatch, capsys):
    from isvc.cli import progress

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = progress.Progress("working [on it]")
    with shown:
        deadline = time.monotonic() + 60
        while shown._status is None:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    assert "working [on it]" in capsys.readouterr().err


@pytest.mark.parametrize("there", [True, False])
def test_up_says_so_where_kubectl_is_missing(there, tmp_path, monkeypatch, capsys):
    from isvc.cli.up import _next_steps
    from isvc.local.home import Home, Running

    monkeypatch.setenv("ISVC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    if there:
        (tmp_path / "kubectl").touch(mode=0o755)
    home = Home.default()
    home.prepare()
    _next_steps(home, Running(1, "", "", "my folder/kubeconfig", ""))
    said = capsys.readouterr().out
    assert "export KUBECONFIG='my folder/kubeconfig'" in said
    assert ("kubectl is not on the PATH" in said) is not there


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("1m30s", 90.0)])
def test_time_to_wait_is_a_number_of_seconds_or_a_duration(text: str, seconds: float) -> None:
    assert Seconds()(text) == seconds


@pytest.mark.parametrize("text", ["soon", "nan"])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"'{text}' is neither a number of seconds nor a duration"):
        Seconds()(text)
