from __future__ import annotations

import gzip
import sys
import zlib

import brotli
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core import codings
from ctxproxy.errors import BodyTooLarge, UnsupportedEncoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BIG = 10_000_000


def bare_deflate(data):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "GZIP": gzip.compress,
    "identity": bytes,
    "": bytes,
    " , identity ,": bytes,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
    "zstd , Identity,deflate": lambda data: zlib.compress(zstd.compress(data)),
    "gzip,gzip": lambda data: gzip.compress(gzip.compress(data)),
}
CASES = [*ENCODERS.items(), ("deflate", bare_deflate)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200).map(lambda data: data * 7), st.sampled_from(CASES))
def test_what_was_coded_is_decoded(data, case):
    header, encode = case
    assert codings.decode_body(encode(data), header, BIG) == data


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60).map(lambda data: data * 7), st.sampled_from(CASES), st.integers(1, 9))
def test_any_chunking_decodes_to_the_same(data, case, chunk_bytes):
    header, encode = case
    coded = encode(data)
    undo = codings.decoder(header)
    pieces = [undo.feed(coded[at : at + chunk_bytes]) for at in range(0, len(coded), chunk_bytes)]
    assert b"".join([*pieces, undo.feed(b""), undo.finish()]) == data


@pytest.mark.parametrize(("header", "encode"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
@pytest.mark.parametrize("chunk_bytes", [1, 10_000])
def test_runs_one_after_the_other_are_one_body(header, encode, chunk_bytes):
    coded = encode(b"one ") + encode(b"") + encode(b"two") + b"\0\0\0"
    undo = codings.decoder(header)
    pieces = [undo.feed(coded[at : at + chunk_bytes]) for at in range(0, len(coded), chunk_bytes)]
    assert b"".join([*pieces, undo.finish()]) == b"one two"


@pytest.mark.parametrize("header", codings.SUPPORTED)
def test_no_data_at_all_is_an_empty_body(header):
    assert codings.decode_body(b"", header, BIG) == b""


@pytest.mark.parametrize("header", codings.SUPPORTED)
def test_data_that_ends_too_early_is_refused(header):
    coded = ENCODERS[header](bytes(range(256)))
    for end in (1, len(coded) // 2, len(coded) - 1):
        with pytest.raises(UnsupportedEncoding, match=f"the {header} data ends too early"):
            codings.decode_body(coded[:end], header, BIG)


@pytest.mark.parametrize("header", ["gzip", "x-gzip", "br", "zstd"])
def test_data_of_another_coding_is_refused_by_name(header):
    with pytest.raises(UnsupportedEncoding, match=f"not valid {header}"):
        codings.decode_body(b'{"model":"m","messages":[]}', header, BIG)


def test_damaged_deflate_is_refused_by_name():
    with pytest.raises(UnsupportedEncoding, match="not valid deflate"):
        codings.decode_body(b"\xff\xff\xff", "deflate", BIG)


@pytest.mark.parametrize("header", ["gzip", "zstd", "br", "deflate"])
def test_data_behind_the_end_is_refused(header):
    with pytest.raises(UnsupportedEncoding):
        codings.decode_body(ENCODERS[header](b"all") + b"junk", header, BIG)


@pytest.mark.parametrize("header", ["br", "deflate"])
def test_data_behind_the_end_is_refused_also_in_a_later_chunk(header):
    undo = codings.decoder(header)
    assert undo.feed(ENCODERS[header](b"all")) == b"all"
    with pytest.raises(UnsupportedEncoding, match=f"behind the end of the {header}"):
        undo.feed(b"junk")


@pytest.mark.parametrize("header", ["compress", "utf-8", "gzip, aes"])
def test_an_unknown_coding_is_named_with_those_supported(header):
    with pytest.raises(UnsupportedEncoding) as caught:
        codings.decode_body(b"x", header, BIG)
    assert repr(header.split(", ")[-1]) in caught.value.message
    assert "supported are gzip, x-gzip, deflate, br, zstd" in caught.value.message
    assert caught.value.status == 415


def test_too_many_codings_on_one_body_are_refused():
    with pytest.raises(UnsupportedEncoding, match="6 content codings"):
        codings.decoder("gzip," * 6)


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_a_body_may_be_just_as_large_as_the_bound_and_no_larger(header):
    coded = ENCODERS[header](b"x" * 100_000)
    assert len(codings.decode_body(coded, header, 100_000)) == 100_000
    with pytest.raises(BodyTooLarge, match="larger than 99999 bytes"):
        codings.decode_body(coded, header, 99_999)


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_the_bound_is_for_all_chunks_together(header):
    coded = ENCODERS[header](bytes(range(256)) * 40)
    undo = codings.decoder(header, 1_000)
    with pytest.raises(BodyTooLarge):
        for at in range(len(coded)):
            undo.feed(coded[at : at + 1])


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_a_large_body_comes_whole(header):
    data = b"".join(b"%d " % number for number in range(300_000))
    assert codings.decode_body(ENCODERS[header](data), header, BIG) == data


def test_a_zstd_window_over_what_http_allows_is_refused():
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 24, zstd.CompressionParameter.compression_level: 1})
    coded = packer.compress(b"x" * 20_000_000) + packer.flush()
    with pytest.raises(UnsupportedEncoding, match="not valid zstd"):
        codings.decode_body(coded, "zstd", 1 << 26)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=80), st.sampled_from(codings.SUPPORTED))
def test_no_data_raises_anything_but_our_errors(data, header):
    try:
        codings.decode_body(data, header, 1_000)
    except (UnsupportedEncoding, BodyTooLarge):
        return
