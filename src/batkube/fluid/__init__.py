"""The fluid model: parallel tasks that share hosts and links, as in SimGrid's L07 host model.

    tasks     resources, and the amounts of work of a task on each of them
    sharing   the rates of tasks that share resources
    flow      tasks that begin and end over time

The package is independent of jobs, pods and platforms. docs/explanation/fluid-model.md has the formulas.
"""
