"""The checks of the Pod Security Standards `baseline` and `restricted`, with kube-apiserver's messages.

The checks are always those of the newest version, whichever version a namespace selects. Kubernetes:
pod-security-admission/policy/check_*.go, one file per function here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Spec = dict[str, Any]
StandardCheck = Callable[[Spec, dict[str, str]], str]
"""Checks the spec and annotations of a pod; returns the reason why it is forbidden, "" if it is allowed."""

_CAPABILITIES = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)
_VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_SECCOMP_PROFILES = ("RuntimeDefault", "Localhost")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def _containers(spec: Spec) -> Iterator[tuple[str, Spec, Spec]]:
    """Yield the name and security context of each container, and the container itself."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            yield container.get("name", ""), container.get("securityContext") or {}, container


def _security_context(spec: Spec) -> Spec:
    return spec.get("securityContext") or {}


def _quoted(words: list[str]) -> str:
    return '"' + '", "'.join(words) + '"'


def _with_plural(word: str, words: list[str]) -> str:
    """Return `container "a"` or `containers "a", "b"`."""
    return f"{word if len(words) == 1 else word + 's'} {_quoted(words)}"


def _verb_use(words: list[str]) -> str:
    return "uses" if len(words) == 1 else "use"


def _distinct(words: list[str]) -> list[str]:
    return sorted(dict.fromkeys(words))


def _offenders(spec: Spec, is_forbidden: Callable[[Spec], bool]) -> str:
    """Return which security contexts are forbidden, as `pod and container "c"`; "" for none."""
    setters = ["pod"] if is_forbidden(_security_context(spec)) else []
    names = [name for name, security, _ in _containers(spec) if is_forbidden(security)]
    return " and ".join([*setters, *([_with_plural("container", names)] if names else [])])


def _context_values(spec: Spec, field: str) -> list[Spec]:
    """Return the values of `field` in all security contexts that set it."""
    contexts = [_security_context(spec), *(security for _, security, _ in _containers(spec))]
    return [context[field] for context in contexts if context.get(field) is not None]


# baseline


def _app_armor(spec: Spec, annotations: dict[str, str]) -> str:
    def bad(security: Spec) -> bool:
        profile = security.get("appArmorProfile")
        return profile is not None and profile.get("type") not in _SECCOMP_PROFILES

    values = _distinct(
        [each["type"] for each in _context_values(spec, "appArmorProfile") if each["type"] not in _SECCOMP_PROFILES]
    )
    noted = sorted(
        f'{name}="{value}"'
        for name, value in annotations.items()
        if name.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    annotated = ("annotation" if len(noted) == 1 else "annotations") if noted else ""
    setters = " and ".join(filter(None, [_offenders(spec, bad), annotated]))
    if not setters:
        return ""
    values += noted
    profiles = "profile" if len(values) == 1 else "profiles"
    return f"forbidden AppArmor {profiles} ({setters} must not set AppArmor profile type to {_quoted(values)})"


def _capabilities_baseline(spec: Spec, _annotations: dict[str, str]) -> str:
    names, added = [], []
    for name, security, _ in _containers(spec):
        extra = [each for each in (security.get("capabilities") or {}).get("add") or () if each not in _CAPABILITIES]
        if extra:
            names.append(name)
            added += extra
    if not names:
        return ""
    listed = _quoted(_distinct(added))
    who = _with_plural("container", names)
    return f"non-default capabilities ({who} must not include {listed} in securityContext.capabilities.add)"


def _host_namespaces(spec: Spec, _annotations: dict[str, str]) -> str:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return f"host namespaces ({', '.join(shared)})" if shared else ""


def _host_paths(spec: Spec, _annotations: dict[str, str]) -> str:
    names = [each["name"] for each in spec.get("volumes") or () if each.get("hostPath") is not None]
    return f"hostPath volumes ({_with_plural('volume', names)})" if names else ""


def _host_ports(spec: Spec, _annotations: dict[str, str]) -> str:
    names, ports = [], []
    for name, _, container in _containers(spec):
        own = [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]
        if own:
            names.append(name)
            ports += own
    if not names:
        return ""
    listed = _distinct(ports)
    word = "hostPort" if len(listed) == 1 else "hostPorts"
    return f"hostPort ({_with_plural('container', names)} {_verb_use(names)} {word} {', '.join(listed)})"


def _probe_hosts(spec: Spec, _annotations: dict[str, str]) -> str:
    names, hosts = [], []
    for name, _, container in _containers(spec):
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(each) for each in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        for handler in handlers:
            for way in ("httpGet", "tcpSocket"):
                host = ((handler or {}).get(way) or {}).get("host")
                if host:
                    names.append(name)
                    hosts.append(host)
    names, hosts = _distinct(names), _distinct(hosts)
    if not names:
        return ""
    used = _with_plural("probe or lifecycle host", hosts)
    return f"probe or lifecycle host ({_with_plural('container', names)} {_verb_use(names)} {used})"


def _privileged(spec: Spec, _annotations: dict[str, str]) -> str:
    names = [name for name, security, _ in _containers(spec) if security.get("privileged")]
    return (
        f"privileged ({_with_plural('container', names)} must not set securityContext.privileged=true)" if names else ""
    )


def _proc_mount(spec: Spec, _annotations: dict[str, str]) -> str:
    mounts = [(name, security.get("procMount")) for name, security, _ in _containers(spec)]
    bad = [(name, kind) for name, kind in mounts if kind not in (None, "Default")]
    if not bad:
        return ""
    kinds = _quoted(_distinct([str(kind) for _, kind in bad]))
    who = _with_plural("container", [name for name, _ in bad])
    return f"procMount ({who} must not set securityContext.procMount to {kinds})"


def _selinux(spec: Spec, _annotations: dict[str, str]) -> str:
    def bad(security: Spec) -> bool:
        options = security.get("seLinuxOptions")
        return options is not None and bool(
            options.get("type", "") not in _SELINUX_TYPES or options.get("user") or options.get("role")
        )

    setters = _offenders(spec, bad)
    if not setters:
        return ""
    options = _context_values(spec, "seLinuxOptions")
    types = _distinct([each.get("type", "") for each in options if each.get("type", "") not in _SELINUX_TYPES])
    problems = [_with_plural("type", types)] if types else []
    problems += [f"{field} may not be set" for field in ("user", "role") if any(each.get(field) for each in options)]
    return f"seLinuxOptions ({setters} set forbidden securityContext.seLinuxOptions: {'; '.join(problems)})"


def _has_bad_seccomp(security: Spec) -> bool:
    profile = security.get("seccompProfile")
    return profile is not None and profile.get("type") not in _SECCOMP_PROFILES


def _seccomp_baseline(spec: Spec, _annotations: dict[str, str]) -> str:
    setters = _offenders(spec, _has_bad_seccomp)
    if not setters:
        return ""
    bad = _distinct(
        [each["type"] for each in _context_values(spec, "seccompProfile") if each["type"] not in _SECCOMP_PROFILES]
    )
    return f"seccompProfile ({setters} must not set securityContext.seccompProfile.type to {_quoted(bad)})"


def _sysctls(spec: Spec, _annotations: dict[str, str]) -> str:
    names = [each["name"] for each in _security_context(spec).get("sysctls") or () if each["name"] not in _SYSCTLS]
    return f"forbidden sysctls ({', '.join(names)})" if names else ""


def _windows(spec: Spec, _annotations: dict[str, str]) -> str:
    setters = _offenders(spec, lambda security: bool((security.get("windowsOptions") or {}).get("hostProcess")))
    return f"hostProcess ({setters} must not set securityContext.windowsOptions.hostProcess=true)" if setters else ""


# restricted


def _is_windows(spec: Spec) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def _privilege_escalation(spec: Spec, _annotations: dict[str, str]) -> str:
    names = [name for name, security, _ in _containers(spec) if security.get("allowPrivilegeEscalation") is not False]
    if not names or _is_windows(spec):
        return ""
    who = _with_plural("container", names)
    return f"allowPrivilegeEscalation != false ({who} must set securityContext.allowPrivilegeEscalation=false)"


def _capabilities_restricted(spec: Spec, _annotations: dict[str, str]) -> str:
    if _is_windows(spec):
        return ""
    keeping, adding, added = [], [], []
    for name, security, _ in _containers(spec):
        capabilities = security.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(name)
        extra = [each for each in capabilities.get("add") or () if each != "NET_BIND_SERVICE"]
        if extra:
            adding.append(name)
            added += extra
    problems = []
    if keeping:
        problems.append(f'{_with_plural("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        listed = _quoted(_distinct(added))
        problems.append(
            f"{_with_plural('container', adding)} must not include {listed} in securityContext.capabilities.add"
        )
    return f"unrestricted capabilities ({'; '.join(problems)})" if problems else ""


def _restricted_volumes(spec: Spec, _annotations: dict[str, str]) -> str:
    bad = [each for each in spec.get("volumes") or () if not any(each.get(kind) is not None for kind in _VOLUMES)]
    if not bad:
        return ""
    names = [each["name"] for each in bad]
    kinds = _distinct([next((field for field in each if field != "name"), "unknown") for each in bad])
    return (
        f"restricted volume types ({_with_plural('volume', names)} {_verb_use(names)} "
        f"{_with_plural('restricted volume type', kinds)})"
    )


def _non_root(spec: Spec, _annotations: dict[str, str]) -> str:
    setters = _offenders(spec, lambda security: security.get("runAsNonRoot") is False)
    if setters:
        return f"runAsNonRoot != true ({setters} must not set securityContext.runAsNonRoot=false)"
    if _security_context(spec).get("runAsNonRoot"):
        return ""
    names = [name for name, security, _ in _containers(spec) if security.get("runAsNonRoot") is None]
    who = f"pod or {_with_plural('container', names)}"
    return f"runAsNonRoot != true ({who} must set securityContext.runAsNonRoot=true)" if names else ""


def _run_as_user(spec: Spec, _annotations: dict[str, str]) -> str:
    setters = _offenders(spec, lambda security: security.get("runAsUser") == 0)
    return f"runAsUser=0 ({setters} must not set runAsUser=0)" if setters else ""


def _seccomp_restricted(spec: Spec, annotations: dict[str, str]) -> str:
    if _is_windows(spec):
        return ""
    explicit = _seccomp_baseline(spec, annotations)
    if explicit or _security_context(spec).get("seccompProfile") is not None:
        return explicit
    names = [name for name, security, _ in _containers(spec) if security.get("seccompProfile") is None]
    remedy = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return f"seccompProfile (pod or {_with_plural('container', names)} {remedy})" if names else ""


#: The checks of each level, in the order of their messages. `restricted` replaces some checks of `baseline`.
STANDARDS: dict[str, tuple[StandardCheck, ...]] = {
    "privileged": (),
    "baseline": (
        _app_armor, _capabilities_baseline, _host_namespaces, _host_paths, _host_ports, _probe_hosts, _privileged,
        _proc_mount, _selinux, _seccomp_baseline, _sysctls, _windows,
    ),
    "restricted": (
        _app_armor, _host_namespaces, _host_ports, _probe_hosts, _privileged, _proc_mount, _selinux, _sysctls, _windows,
        _privilege_escalation, _capabilities_restricted, _restricted_volumes, _non_root, _run_as_user,
        _seccomp_restricted,
    ),
}  # fmt: skip


def violations(level: str, spec: Spec, annotations: dict[str, str]) -> str:
    """Return the violations of a level by a pod, "" for none."""
    return ", ".join(filter(None, (check(spec, annotations) for check in STANDARDS[level])))
