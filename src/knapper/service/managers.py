"""Choose this system's service manager."""

from knapper.service.definition import CommandRunner, MachineFacts, ServiceManager
from knapper.service.launchd import LaunchdManager
from knapper.service.systemd import SystemdManager
from knapper.service.task_scheduler import TaskSchedulerManager


def choose_manager(machine: MachineFacts, runner: CommandRunner) -> ServiceManager:
    """Return the service manager of a machine."""
    match machine.system:
        case "linux":
            return SystemdManager(machine=machine, runner=runner)
        case "macos":
            return LaunchdManager(machine=machine, runner=runner)
        case "windows":
            return TaskSchedulerManager(machine=machine, runner=runner)
