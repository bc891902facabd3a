output "role_arn" {
  description = "Whom the role in each account has to trust."
  value       = aws_iam_role.hub.arn
}

output "store" {
  description = "What --store is set to."
  value       = "s3://${aws_s3_bucket.store.bucket}/${local.prefix}"
}
