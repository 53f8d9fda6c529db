"""What calls no server: `temporal config` and `env`, which set options of other commands, and `completion`."""

import expect
from setting import Setting, case

NOWHERE = "127.0.0.1:1"


@case
async def profiles_are_configured(at: Setting) -> None:
    cli, profile = at.cli.at_home(at.prefix), ["--profile", "ours"]
    local = cli.local
    for prop, value in (("address", NOWHERE), ("namespace", "elsewhere")):
        (await local("config", "set", "--prop", prop, "--value", value, *profile)).says("")
    (row,) = (await local("config", "get", "--prop", "address", *profile)).table()
    expect.equal([row["Property"], row["Value"]], ["address", NOWHERE], "a property")
    told = (await local("config", "get", *profile, "-o", "json")).json()
    expect.equal(told, {"address": NOWHERE, "namespace": "elsewhere"}, "all of them")
    names = [row["Name"] for row in (await local("config", "list")).table()]
    expect.equal(names, ["ours"], "its name")
    # Options of a command come before those of its profile.
    (await cli("operator", "cluster", "health", *profile)).says("SERVING")
    unreachable = await local("operator", "cluster", "health", *profile)
    expect.that(unreachable.code == 1 and NOWHERE in unreachable.errors, "its address", unreachable)
    await local("config", "delete", "--prop", "address", *profile)
    told = (await local("config", "get", *profile, "-o", "json")).json()
    expect.equal(told, {"namespace": "elsewhere"}, "what is left")
    await local("config", "delete-profile", *profile)
    expect.equal((await local("config", "list")).table(), [], "it is gone")


@case
async def environments_are_set(at: Setting) -> None:
    local, env = at.cli.at_home(at.prefix).local, ["--env", "ours"]
    await local("env", "set", *env, "--key", "address", "--value", NOWHERE)
    (row,) = (await local("env", "get", *env)).table()
    expect.equal([row["Property"], row["Value"]], ["address", NOWHERE], "a property")
    names = [row["Name"] for row in (await local("env", "list")).table()]
    expect.equal(names, ["ours"], "its name")
    unreachable = await local("operator", "cluster", "health", *env)
    expect.that(unreachable.code == 1 and NOWHERE in unreachable.errors, "its address", unreachable)
    await local("env", "delete", *env)
    expect.equal((await local("env", "list")).table(), [], "it is gone")


@case
async def shells_are_told_of_commands(at: Setting) -> None:
    for shell in ("bash", "fish", "powershell", "zsh"):
        script = await at.cli.local("completion", shell)
        expect.that(script.code == 0 and "temporal" in script.text, shell, script)
