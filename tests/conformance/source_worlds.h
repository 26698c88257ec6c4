// The sources that the conformance suite runs against, and the damage it can do to them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/bytes/source.h"
#include "weft/content.h"

namespace weft::conformance {

struct Blob {
  ContentId id;
  std::vector<std::byte> bytes;
};
Blob make_blob(std::size_t size, std::uint64_t seed);

enum class Damage : unsigned char {
  wrong_byte,      // one bit of the blob's last chunk is flipped
  short_bytes,     // the bytes end too early
  oversized,       // the source sends more bytes than requested
  forged_digests,  // the chunk digests belong to other bytes
  lost,            // the blob is missing
};

// A source and its storage.
class SourceWorld {
 public:
  virtual ~SourceWorld() = default;
  virtual std::string name() const = 0;
  virtual std::shared_ptr<BlobSource> source() = 0;
  // Stores a version of these blobs, in this order.
  virtual void put(std::vector<std::byte> manifest, const std::vector<Blob>& blobs) = 0;
  virtual void spoil_manifest(const Digest& manifest) = 0;  // replaces its bytes
  // False if this source cannot have such damage.
  virtual bool damage(const Blob& blob, Damage what) = 0;
  virtual void hang(const Blob& blob) = 0;  // reads of the blob block until let_go()
  virtual void let_go() = 0;
  virtual void vanish() = 0;  // removes all of the storage
};

std::vector<std::unique_ptr<SourceWorld>> source_worlds();

}  // namespace weft::conformance
