"""Write the files at the end of a run: its results and the manifest."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from batkube.cluster.mapping import ResourceModel
from batkube.kernel.errors import Bug, RunFailed
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import as_float_s, format_seconds
from batkube.kernel.stopwatch import CpuStopwatch, peak_memory_bytes
from batkube.outputs.files.file_list import file_digest
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.files.manifest import fingerprint, write_json
from batkube.outputs.writers.devices_csv import write_devices
from batkube.outputs.writers.energy_csv import write_consumed_energy, write_pstate_changes
from batkube.outputs.writers.jobs_csv import GANG_COLUMNS, ExtraColumns, write_jobs
from batkube.outputs.writers.nodes_csv import write_nodes
from batkube.outputs.writers.schedule_csv import summary_of, write_schedule
from batkube.outputs.writers.schedulers_csv import SchedulerShare, write_schedulers
from batkube.programs.observation.failed_attempts import version_in_log
from batkube.simulation.assembly import Simulation
from batkube.simulation.preparation.input_files import PACK_FOLDER, input_files_of, pack
from batkube.simulation.preparation.inputs import Inputs
from batkube.simulation.preparation.sanity_notes import note_unsuitable_results
from batkube.version import __version__
from batkube.workloads.history import step_values
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.programs.observation.conflicts import SchedulerConflicts

_NO_JOB_MEASURED = FidelityNote(
    "window", "no job was submitted between warm-up and cool-down, so there are no mean values: make both shorter"
)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run that has ended, successfully or not."""

    inputs: Inputs
    simulation: Simulation
    #: Of the journal.
    digest: str
    failure: RunFailed | Bug | None
    #: The command line, empty when run from Python.
    command: Sequence[str]
    stopwatch: CpuStopwatch
    #: Whether the inputs go with the outputs.
    includes_inputs: bool = False

    def write(self, folder: OutputFolder) -> None:
        """Write all files that are not written during the run."""
        outcomes, energy = self.simulation.all_outcomes, self.simulation.energy
        joules_of = None if energy is None else energy.joules_by_job
        write_jobs(folder.file("jobs.csv"), outcomes, self._gang_columns(), joules_of)
        machines = self.simulation.world.machines
        write_nodes(folder.file("nodes.csv"), machines.machines, machines.presence)
        summary = summary_of(
            outcomes,
            self.simulation.machine_states,
            self.simulation.usage,
            machine_count=len(machines.machines),
            whole_machines=self.inputs.model is ResourceModel.MACHINES,
            job_count=self.simulation.completion.job_count,
            version=__version__,
            warm_up=self.inputs.scenario.warm_up,
            cool_down=self.inputs.scenario.cool_down,
        )
        if energy is not None:
            summary["consumed_joules"] = f"{energy.last_job_joules or 0.0:.6f}"
            summary["nb_grouped_switches"], summary["nb_machine_switches"] = energy.requests, energy.switches
            write_consumed_energy(folder.file("consumed_energy.csv"), energy.readings)
            write_pstate_changes(folder.file("pstate_changes.csv"), energy.pstate_changes)
        if self.simulation.auditor is not None:
            self.simulation.auditor.write(folder.file("audit.jsonl"))
        if self.simulation.devices is not None and self.simulation.devices.uses:
            write_devices(folder.file("devices.csv"), self.simulation.devices.uses)
        if self.simulation.gangs is not None:
            summary["nb_jobs_deadlocked"] = len(self.simulation.gangs.deadlocked_jobs)
        if self.simulation.conflicts is not None:
            summary |= self._write_scheduler_shares(folder, self.simulation.conflicts)
        summary |= self.simulation.programs.columns()
        notes = self.simulation.world.notes
        if summary["nb_jobs_finished"] and not summary["nb_jobs_measured"]:
            notes.add(_NO_JOB_MEASURED, example=f"{summary['nb_jobs']} jobs")
        note_unsuitable_results(outcomes, notes)
        summary["nb_violations"] = notes.violations
        write_schedule(folder.file("schedule.csv"), summary)
        write_json(folder.file("fidelity.json"), notes.rows())
        if self.includes_inputs:
            pack(input_files_of(self.inputs.scenario), folder.file(PACK_FOLDER))
        if self.failure is not None:
            self._mark_failed(folder, self.failure)
        folder.seal(self._manifest())

    def write_bug(self, folder: OutputFolder, bug: Bug) -> None:
        """Keep the files that `write` wrote before `bug` was raised, and add its report."""
        self._mark_failed(folder, bug)
        try:
            manifest = replace(self, failure=bug)._manifest()
        except Exception:  # which may be the bug itself, or follow from it
            manifest = {
                "batkube": __version__,
                "command": list(self.command),
                "scenario": self.inputs.scenario.describe(),
                "result": "failed",
                "failure": str(bug),
            }
        folder.seal(manifest)

    @staticmethod
    def _mark_failed(folder: OutputFolder, failure: RunFailed | Bug) -> None:
        folder.protect_completed_run()
        if isinstance(failure, Bug):
            lines = traceback.format_exception(failure.origin)
            folder.file("bug.txt").write_text("".join(lines), encoding="utf-8")

    def _write_scheduler_shares(self, folder: OutputFolder, conflicts: SchedulerConflicts) -> dict[str, int]:
        """Write schedulers.csv, with the share of each of several schedulers; return columns for schedule.csv."""
        from batkube.programs.startup.command_lines import served_scheduler_names

        schedulers = self.inputs.external_programs[: 1 + len(self.inputs.scenario.more_schedulers)]
        texts = (self.inputs.scenario.scheduler, *self.inputs.scenario.more_schedulers)
        shares = [
            SchedulerShare(
                text,
                names,
                conflicts.bindings[scheduler.folder],
                conflicts.refused_bindings[scheduler.folder],
                sum(conflicts.rejected_pods[name] for name in names),
            )
            for text, scheduler, names in zip(texts, schedulers, map(served_scheduler_names, schedulers), strict=True)
        ]
        write_schedulers(folder.file("schedulers.csv"), shares, self.simulation.all_outcomes)
        refused, rejected = conflicts.refused_bindings.total(), conflicts.rejected_pods.total()
        return {"nb_bindings_refused": refused, "nb_pods_rejected": rejected}

    def _gang_columns(self) -> ExtraColumns:
        """Return the columns of jobs.csv for jobs of several pods that an external program places."""
        gangs, admissions = self.simulation.gangs, self.simulation.admissions
        if gangs is None:
            return ExtraColumns()
        waits, instants, job_forms = gangs.member_waits, admissions.admitted_at, self.inputs.job_forms

        def cells(job: Job) -> tuple[str, str, str]:
            form = job_forms[job.scheduler].form.value if job.scheduler in job_forms else ""
            instant = instants.get(job.key)
            admitted = "" if instant is None else format_seconds(instant)
            return form, admitted, format_seconds(waits.get(job.key, 0))

        return ExtraColumns(GANG_COLUMNS, cells)

    def _manifest(self) -> dict[str, object]:
        scenario = self.inputs.scenario
        return {
            "batkube": __version__,
            "command": list(self.command),
            "scenario": scenario.describe(),
            "scheduler": scenario.scheduler,
            "resources": self.inputs.model.value,
            "seed": scenario.seed,
            "latencies": self.inputs.latencies.describe(),
            "inputs": [
                {"path": str(file.path), **file_digest(file.path), "place": file.packed_path}
                for file in input_files_of(self.inputs.scenario)
            ],
            "workload_history": {
                workload.source: step_values(workload.header.history)
                for workload in self.inputs.workloads
                if workload.header.history
            },
            "platform": {"machines": list(self._machines())},
            "jobs": self.simulation.completion.job_count,
            "objects": len(self.inputs.objects) + len(self.inputs.timeline.applied_objects),
            "end_s": as_float_s(self.simulation.world.clock.now),
            "result": "completed" if self.failure is None else "failed",
            "failure": None if self.failure is None else str(self.failure),
            "digest": self.digest,
            "left_out": scenario.omitted_outputs,
            "programs": self._programs(),
            "real": {
                "run_s": round(self.stopwatch.real_s, 3),
                "cpu_s": round(self.stopwatch.cpu_s, 3),
                "peak_memory_bytes": peak_memory_bytes(),
                "programs": self._program_usage(),
                "python": sys.version.split()[0],
                "system": f"{platform.system()} {platform.machine()}",
                "cores": os.cpu_count(),
            },
        }

    def _machines(self) -> Iterator[dict[str, object]]:
        """Yield the manifest entry of each machine, with the times at which its node existed unless it always did."""
        register = self.simulation.world.machines
        for number, machine in enumerate(register.machines):
            entry = {"name": machine.name, "cpu_milli": machine.cpu_milli, "capacity": machine.capacity}
            presence = register.presence(number)
            if presence is not None:
                entry["present_s"] = [[None if at is None else as_float_s(at) for at in span] for span in presence]
            yield entry

    def _programs(self) -> list[dict[str, object]]:
        """Return the manifest entries of the external programs."""
        attachments = self.simulation.programs.attachments
        if not attachments:
            return []
        from batkube.programs.startup.command_lines import served_scheduler_names

        return [
            {
                "name": scheduler.name,
                "serves": served_scheduler_names(scheduler),
                "version": version_in_log(attachment.process.log.head),
                **fingerprint(scheduler.binary),
            }
            for scheduler, attachment in zip(self.inputs.external_programs, attachments, strict=True)
        ]

    def _program_usage(self) -> list[dict[str, object]]:
        """Return the resource usage of the external programs, in their order."""
        usages = [program.process.usage for program in self.simulation.programs.attachments]
        return [{"cpu_s": round(usage.cpu_s, 3), "peak_memory_bytes": usage.peak_memory_bytes} for usage in usages]
