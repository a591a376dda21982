"""SQL macros that live in the built database, so that rules can use them."""

from __future__ import annotations

# the order of ascend_compat.stack.versions.version_key, which tells what it means; tested to be the same
VERSION_KEY = r"""
CREATE MACRO version_key(version) AS CASE WHEN regexp_matches(version, '[0-9]') THEN
    list_append(
        list_filter(
            list_transform(
                regexp_extract_all(
                    regexp_replace(
                        regexp_replace(
                            regexp_replace(
                                regexp_replace(
                                    regexp_replace(
                                        regexp_extract(lower(trim(version)), '[0-9].*'),
                                        '[+@].*', ''),
                                    '\.b[0-9]+$', ''),
                                '^([0-9]+)$', '\1.0'),
                            '^([0-9]+\.[0-9]+)$', '\1.0'),
                        '^([0-9]+\.[0-9]+\.[0-9]+)(\.0+)+$', '\1'),
                    '[0-9]+|[a-z]+'),
                lambda token: CASE
                    WHEN token IN ('dev') THEN -6
                    WHEN token IN ('alpha', 'a') THEN -5
                    WHEN token IN ('beta', 'b') THEN -4
                    WHEN token IN ('rc', 'c') THEN -3
                    WHEN token IN ('post') THEN -1
                    ELSE TRY_CAST(left(token, 18) AS BIGINT)
                END),
            lambda part: part IS NOT NULL),
        -2)
END
"""
MACROS = (VERSION_KEY,)
