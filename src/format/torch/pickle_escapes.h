// The escapes in the texts of pickles of protocol 0. A name that is written by escapes is the name without them.
#pragma once

#include <cstddef>
#include <span>

namespace weft {

// The functions replace the escapes by the bytes that they mean, which are fewer. They return the length of the result.
// Escapes that Python refuses stay as they are.

// As codecs.escape_decode() does: a backslash before n, x6f or 157.
std::size_t unescape_bytes(std::span<char> text);
// As the codec raw-unicode-escape does: a backslash before u006f or U0000006f. The result is UTF-8.
std::size_t unescape_text(std::span<char> text);

}  // namespace weft
