// The sources that the conformance suite runs against, and what can be done to them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/content.h"
#include "weft/source.h"

namespace weft::conformance {

struct Blob {
  ContentId id;
  std::vector<std::byte> bytes;
};
Blob make_blob(std::size_t size, std::uint64_t seed);

enum class Damage : unsigned char {
  wrong_byte,      // one bit of the blob's last chunk is another
  short_bytes,     // it ends before its time
  oversized,       // more bytes come than were asked for
  forged_digests,  // the chunk digests are those of other bytes
  lost,            // it is not there
};

// Where a source has its bytes.
class SourceWorld {
 public:
  virtual ~SourceWorld() = default;
  virtual std::string name() const = 0;
  virtual std::shared_ptr<BlobSource> source() = 0;
  // A version of these blobs, in this order.
  virtual void put(std::vector<std::byte> manifest, const std::vector<Blob>& blobs) = 0;
  virtual void spoil_manifest(const Digest& manifest) = 0;  // other bytes are there
  // False: it cannot happen to this source.
  virtual bool damage(const Blob& blob, Damage what) = 0;
  virtual void hang(const Blob& blob) = 0;  // who reads it waits, until let_go()
  virtual void let_go() = 0;
  virtual void vanish() = 0;  // nothing of it is there any more
};

std::vector<std::unique_ptr<SourceWorld>> source_worlds();

}  // namespace weft::conformance
