#include "dataset/record_layout.h"

#include <fmt/core.h>

#include "weft/model/tree.h"

namespace weft {
namespace {

constexpr std::uint64_t aligned(std::uint64_t at) {
  return (at + kRecordAlign - 1) / kRecordAlign * kRecordAlign;
}

}  // namespace

std::string record_npy_header(std::uint64_t rows) {
  const std::string dict = fmt::format(
      "{{'descr': [('offset', '<u8'), ('length', '<u8')], 'fortran_order': False, 'shape': ({},), }}", rows);
  return npy_header(DType::npy_other, {}, dict);
}

RecordSections record_sections(const RecordHeader& header) {
  RecordSections at;
  at.index = kRecordHeaderBytes;
  at.rows = at.index + record_npy_header(header.rows).size();
  at.keys = aligned(at.rows + 16 * header.rows);
  at.path_ends = aligned(at.keys + header.keys_bytes);
  at.path_rows = aligned(at.path_ends + 4 * header.paths);
  at.path_text = aligned(at.path_rows + 4 * header.paths);
  at.skipped = aligned(at.path_text + header.path_bytes);
  at.end = at.skipped + header.skipped_bytes;
  return at;
}

}  // namespace weft
