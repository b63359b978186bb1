"""Texts that try to break out of an HTML page."""

from __future__ import annotations

from hypothesis import strategies as st

#: Any text, and texts that try to end an element, an attribute, a comment or a template.
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "</title><script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "' onmouseover='alert(1)",
            "<!-- ",
            "]]>",
            "&lt;b&gt; &amp; &nbsp",
            "</style></svg></details>",
            "{title} %s \\",
            "\x00\x1b[31m\ud800\ufffe",
            "java\tscript:alert(1)",
        ]
    ),
)
