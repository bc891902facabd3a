# The store: one bucket that everybody shares.

resource "aws_s3_bucket" "store" {
  bucket = var.bucket_name
  tags   = var.tags
}

resource "aws_s3_bucket_public_access_block" "store" {
  bucket                  = aws_s3_bucket.store.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "store" {
  bucket = aws_s3_bucket.store.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "store" {
  bucket = aws_s3_bucket.store.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
    bucket_key_enabled = var.kms_key_arn != null
  }
}

# What was deleted can be had back. Driftline never replaces a file, but it does delete some with nearly every commit: what
# is beneath view/ is derived from the rest, and made anew.
resource "aws_s3_bucket_versioning" "store" {
  bucket = aws_s3_bucket.store.id

  versioning_configuration {
    status = "Enabled"
  }
}

# Only what was deleted already, and what was never finished, goes by itself. A rule that expires current objects would
# take the log's records, without which nothing can be read: `driftline gc` knows what nobody needs.
resource "aws_s3_bucket_lifecycle_configuration" "store" {
  bucket = aws_s3_bucket.store.id

  rule {
    id     = "what-was-deleted"
    status = "Enabled"
    filter {}

    noncurrent_version_expiration {
      noncurrent_days = var.keep_deleted_days
    }

    expiration {
      expired_object_delete_marker = true
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  # The shorter of two rules counts. Without this one, every index and every view that there was in a month would be paid
  # for, and nobody would want one back.
  rule {
    id     = "what-was-derived"
    status = "Enabled"

    filter {
      prefix = "${local.prefix}/view/"
    }

    noncurrent_version_expiration {
      noncurrent_days = 1
    }
  }

  depends_on = [aws_s3_bucket_versioning.store]
}

resource "aws_s3_bucket_policy" "store" {
  bucket = aws_s3_bucket.store.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid       = "OnlyOverTls"
        Effect    = "Deny"
        Principal = "*"
        Action    = "s3:*"
        Resource  = [aws_s3_bucket.store.arn, "${aws_s3_bucket.store.arn}/*"]
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      }],
      length(var.reader_arns) == 0 ? [] : [{
        Sid       = "Readers"
        Effect    = "Allow"
        Principal = { AWS = var.reader_arns }
        Action    = ["s3:GetObject", "s3:ListBucket"]
        Resource  = [aws_s3_bucket.store.arn, "${aws_s3_bucket.store.arn}/*"]
      }],
    )
  })

  depends_on = [aws_s3_bucket_public_access_block.store]
}
