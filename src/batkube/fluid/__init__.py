"""Work that flows: parallel tasks that share hosts and links, as SimGrid's L07 model lets them.

    sharing   at which rate each task goes on, while nothing changes
    tasks     what a task takes of which resources
    flow      tasks that come and go in time; what a change is not felt by is left alone

Nothing here knows of jobs, pods or platforms. The model in formulas: docs/explanation/fluid-model.md.
"""
